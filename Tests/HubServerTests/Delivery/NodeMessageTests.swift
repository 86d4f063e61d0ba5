import HubChannels
import HubCore
import HubDelivery
import HubTesting
import PusherProtocol
import Testing

@testable import HubServer

@Suite("Words of delivery between nodes")
struct NodeMessageTests {
    private static let connection = ConnectionID(loop: 3, slot: 70_000, generation: 9)
    private static let id = PublishID(text: "018bcfe5-6800-7000-8000-000000000001", time: 1_700_000_000_000)

    private static var forecast: EventForecast {
        var forecast = EventForecast(channel: "c", definition: "game", policy: .critical, lifetimeMilliseconds: 300_000)
        forecast.choices = [.pushed: 2, .awaited: 1]
        forecast.recipients = [
            .init(user: "u", note: .init(state: .live, choice: .awaited), waitMilliseconds: 8_000, devices: ["d", "e"]),
            .init(user: "v", note: .init(state: nil, choice: .pushed), waitMilliseconds: nil, devices: []),
        ]
        return forecast
    }

    private static let detailed = ParticipantPresence(
        connections: 2, state: .background, sockets: [.init(node: "n1", loop: 3, device: "d", state: .foreground, receiptAge: 300)],
        changes: [PresenceChange(at: 1, .lost, device: nil)])

    /// Bytes of the message as builds before its last fields write it; nil: it has no such fields.
    private static func formerLength(_ message: DeliveryMessage) -> Int? {
        guard case .present(let asker, let ticket, let people) = message else { return nil }
        let plain = people.mapValues { ParticipantPresence(connections: $0.connections, state: $0.state) }
        return DeliveryMessage.present(asker: asker, ticket: ticket, plain).bytes.count - 2
    }

    static var messages: [DeliveryMessage] {
        [
            .hello(.init(tag: .max, moreTag: 1, loopCount: 4, isQuestion: true)),
            .reports(
                loop: 2,
                [
                    .attached(connection, app: "1", channel: "private-x", user: nil, isBrowser: true, ticket: nil),
                    .attached(connection, app: "1", channel: "presence-ä", user: "u", isBrowser: false, ticket: 1 << 40),
                    .present(
                        connection, app: "1", channel: "private-x", user: "u", isBrowser: false, ticket: 7, state: .background,
                        keepsWorking: true),
                    .presentUpTo(ticket: 0), .detached(connection, channel: ""), .state(connection, .foreground, keepsWorking: false),
                    .disconnected(connection, mayReturn: true), .pinged(events: [1, .max], cursor: 128), .proving(event: 5, cursor: 6),
                    .replayed(connection, tokens: [], cursor: 0), .receipt(connection, cursor: 300),
                ]),
            .publish(
                ForwardedPublish(
                    ticket: 5, app: "1",
                    requests: [
                        .init(
                            name: "asked", channels: ["presence-a", "b"], data: DataLiteral(content: "{\"a\":\"ü\"}"),
                            excluded: SocketID("1.2"), id: id)
                    ], mayBeKnown: true, key: "k")),
            .published(asker: 7, ticket: 8, .taken([(request: 0, channel: 1, event: "e"), (request: 1, channel: 0, event: nil)])),
            .published(asker: 7, ticket: 8, .refused([(request: 0, channel: 1)], PublishRefusal(status: 400, sentence: "no"))),
            .event(
                ReleasedEvent(
                    app: "1", channel: "presence-a", name: "asked", data: DataLiteral(content: "x"), eventID: "e", roles: ["hider", nil],
                    attendedUpTo: [1: [2, 3], 9: []], receipt: 4, excluded: SocketID("3.4"), isAgain: true, serial: 77)),
            .event(
                ReleasedEvent(
                    app: "1", channel: "b", name: "n", data: DataLiteral(content: ""), eventID: nil, roles: nil, attendedUpTo: nil,
                    receipt: nil, excluded: nil, isAgain: false, serial: 0)),
            .wasLetOut(number: 5, tickets: [1, 2]), .connections(node: 4, .roles(connection, channel: "c", nil)),
            .connections(node: 4, .roles(connection, channel: "c", ["hider"])),
            .connections(node: 4, .replay(connection, channel: "c", token: 9, frames: [0x81, 0])),
            .connections(node: 4, .prove(event: 1, [connection])), .ask(round: 3), .heard(asker: 1, round: 2, newcomers: 3),
            .attend(round: 1, partitions: PartitionSet([0, 63])), .attended(asker: 1, round: 2),
            .order(.received(AppReceipt(event: "e", app: "1", channel: "c", user: "u", device: "d", recipient: 3)), ticket: nil),
            .order(.deviceState(app: "1", user: "u", device: "d", .unknown, keepsWorking: true), ticket: 4),
            .order(.signed(socket: "1.2", app: "1", user: "u", device: "d", channel: nil), ticket: nil),
            .order(.removed(app: "1", session: "s", definition: "quiz", users: ["u", "v"], isOver: true), ticket: 9),
            .order(.rosterChanged(app: "1", session: "s", user: "u"), ticket: nil), .done(asker: 1, ticket: 2),
            .presence(ticket: 1, app: "1", channel: "c", users: ["u"]),
            .present(asker: 1, ticket: 2, ["u": ParticipantPresence(connections: 2, state: .background)]),
            .present(asker: 1, ticket: 2, ["u": detailed]), .pushes(events: ["a", "b"]),
            .forecast(
                ForwardedForecast(
                    ticket: 3, app: "1", name: "asked", channel: "c", data: DataLiteral(content: "x"), excluded: SocketID("1.2"))),
            .forecasted(asker: 1, ticket: 3, .refused(PublishRefusal(status: 404, sentence: "no session"))),
            .forecasted(asker: 1, ticket: 3, .decided(forecast)),
            .forecasted(asker: 1, ticket: 4, .decided(.init(channel: "c", definition: nil))),
        ]
    }

    @Test("every message comes back as it went, and no beginning of one is a message")
    func everyKind() throws {
        for message in Self.messages {
            let bytes = message.bytes
            let read = try #require(DeliveryMessage(bytes[...]))
            #expect(read.bytes == bytes)
            for count in 0..<bytes.count where count != Self.formerLength(message) {
                #expect(DeliveryMessage(bytes[..<count]) == nil, "\(count) bytes of \(message)")
            }
        }
    }

    @Test("an answer about presence of a build before its details is read without them")
    func former() throws {
        for message in Self.messages {
            guard case .present(_, _, let people) = message, let length = Self.formerLength(message) else { continue }
            guard case .present(1, 2, let read)? = DeliveryMessage(message.bytes[..<length]) else {
                Issue.record("\(message) is not read")
                continue
            }
            #expect(read.mapValues(\.connections) == people.mapValues(\.connections))
            #expect(read.values.allSatisfy { $0.sockets.isEmpty && $0.changes.isEmpty })
        }
    }

    @Test("details of a large answer are left out where the message would grow too long; the people are all there")
    func large() throws {
        let device = String(repeating: "ü", count: 128)
        let socket = ParticipantPresence.Socket(node: "0123456789abcdef", loop: 1, device: device, state: .unknown, receiptAge: 1)
        let one = ParticipantPresence(connections: 5, state: .unknown, sockets: Array(repeating: socket, count: 5))
        let people = Dictionary(uniqueKeysWithValues: (0..<1000).map { (String(repeating: "x", count: 120) + "\($0)", one) })
        let bytes = DeliveryMessage.present(asker: .max, ticket: .max, people).bytes
        #expect(bytes.count < 1_000_000)
        guard case .present(_, _, let read)? = DeliveryMessage(bytes[...]) else {
            Issue.record("\(bytes.count) bytes are not read")
            return
        }
        let named = read.values.reduce(0) { $0 + $1.sockets.count }
        #expect(read.count == 1000 && named > 2000 && named < 5000, "\(named) sockets")
    }

    @Test("fields that a newer version has appended are ignored, and its new kinds are no message")
    func newer() throws {
        for message in Self.messages { #expect(try #require(DeliveryMessage((message.bytes + [1, 200, 3])[...])).bytes == message.bytes) }
        for kind: UInt8 in [0, 60, 127] { #expect(DeliveryMessage([kind, 1, 1][...]) == nil) }
    }

    @Test("changed bytes are another message or none")
    func changed() {
        var random = SeededRandom(state: 7)
        for message in Self.messages {
            for _ in 0..<200 {
                var bytes = message.bytes
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: .min ... .max, using: &random)
                }
                if let read = DeliveryMessage(bytes[...]) { #expect(!read.bytes.isEmpty) }
            }
        }
    }

    @Test("a connection of another node has one name in the book, and its own name there")
    func names() throws {
        let own = ProcessTag(random: 1)
        var table = NodeTable(process: own, loopCount: 2)
        table.add(9, .init(tag: 5, moreTag: 6, loopCount: 4, isQuestion: false), loops: 2..<6)
        let known = try #require(table.known(Self.connection, of: 9))
        #expect(known.connection.loop == 5 && known.connection.slot == 70_000)
        #expect(known.socket == ProcessTag(random: 5, 6).socketID(of: Self.connection))
        let remote = try #require(table.remote(known.connection))
        #expect(remote.node == 9 && remote.connection == Self.connection)
        #expect(table.connection(of: known.socket) == known.connection)
        let mine = ConnectionID(loop: 1, slot: 4, generation: 1)
        #expect(table.connection(of: own.socketID(of: mine)) == mine && table.remote(mine) == nil)
        #expect(table.byNode([1, 2, 3, 4, 5, 6], me: 7) == [7: [1, 2], 9: [3, 4, 5, 6]])
        #expect(table.known(ConnectionID(loop: 4, slot: 0, generation: 0), of: 9) == nil)
        #expect(table.remove(9) == 2..<6 && table.connection(of: known.socket) == nil)
    }
}
