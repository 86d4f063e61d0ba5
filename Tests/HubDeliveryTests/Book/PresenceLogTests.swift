import HubCore
import HubDefinitions
import HubTesting
import Testing

@testable import HubDelivery

@Suite("Connections of a person, for whoever looks")
struct PresenceLogTests {
    private static let channel = "presence-room-a"
    private static let (first, second) = (ConnectionID(loop: 0, slot: 1, generation: 1), ConnectionID(loop: 1, slot: 1, generation: 1))

    private final class Stage {
        var book: DeliveryBook
        var now = Moment(monotonic: 1000, wall: ManualClock.start)
        private var lastTicket: UInt64 = 0

        init() throws {
            let yaml = "channel: presence-room-{session}\nevents: { asked: { to: all, policy: realtime_only } }"
            book = DeliveryBook(.init(loopCount: 2), definitions: try DefinitionSet.load([("room.yaml", yaml)]))
        }

        func take(_ item: DeliveryBook.Item) { _ = book.take(item, .nothing, at: now) }
        func report(_ connection: ConnectionID, _ report: DeliveryBook.Report) { take(.report(loop: connection.loop, report)) }

        func attach(_ connection: ConnectionID, user: String = "u", ticket: UInt64? = 0) {
            lastTicket += 1
            report(
                connection,
                .attached(
                    connection, socket: "\(connection)", app: "1", channel: PresenceLogTests.channel, user: user, isBrowser: false,
                    ticket: ticket.map { _ in lastTicket }, silenceMax: .seconds(25)))
        }

        func pass(_ milliseconds: Int64) { now = Moment(monotonic: now.monotonic + milliseconds, wall: now.wall + milliseconds) }

        func presence(_ users: String...) -> [String: ParticipantPresence] {
            book.presence(app: "1", channel: PresenceLogTests.channel, users: users, at: now)
        }
    }

    @Test("sockets name loop, device, state and the age of the last receipt, the newest first")
    func sockets() throws {
        let stage = try Stage()
        stage.take(.signed(Self.first, socket: "\(Self.first)", app: "1", user: "u", device: "phone", channel: nil))
        stage.attach(Self.first)
        stage.pass(100)
        stage.attach(Self.second)
        stage.report(Self.second, .state(Self.second, .background, keepsWorking: false))
        #expect(stage.presence("u")["u"]?.sockets.map(\.receiptAge) == [nil, nil])
        stage.report(Self.first, .receipt(Self.first, cursor: 1))
        stage.pass(250)
        let sockets = stage.presence("u")["u"]?.sockets
        #expect(
            sockets == [
                .init(loop: 1, device: nil, state: .background, receiptAge: nil),
                .init(loop: 0, device: "phone", state: .unknown, receiptAge: 250),
            ])
    }

    @Test("more connections than are named are counted, and the newest are named")
    func many() throws {
        let stage = try Stage()
        for slot in 1...9 { stage.attach(ConnectionID(loop: slot % 2, slot: slot, generation: 1)) }
        let presence = try #require(stage.presence("u")["u"])
        #expect(presence.connections == 9 && presence.sockets.map(\.loop) == [1, 0, 1, 0, 1])
    }

    @Test("a question about one person tells what became of the connections, also of somebody who is gone")
    func changes() throws {
        let stage = try Stage()
        stage.take(.signed(Self.first, socket: "\(Self.first)", app: "1", user: "u", device: "phone", channel: nil))
        stage.attach(Self.first)
        stage.pass(10)
        // A second word of the same state is no change.
        for state in [AppState.foreground, .foreground, .background] {
            stage.report(Self.first, .state(Self.first, state, keepsWorking: false))
        }
        stage.take(.deviceState(app: "1", user: "u", device: "phone", .foreground, keepsWorking: false))
        stage.take(.deviceState(app: "1", user: "u", device: "other", .background, keepsWorking: false))
        stage.pass(10)
        stage.report(Self.first, .disconnected(Self.first, socket: "\(Self.first)", mayReturn: true))
        stage.attach(Self.second)
        stage.report(Self.second, .detached(Self.second, channel: Self.channel))
        let one = try #require(stage.presence("u")["u"])
        #expect(one.connections == 0 && one.sockets.isEmpty)
        #expect(one.changes.map(\.kind) == [.opened, .foreground, .background, .foreground, .lost, .opened, .closed])
        #expect(one.changes.map { $0.at - ManualClock.start } == [0, 10, 10, 10, 20, 20, 20])
        #expect(one.changes.map(\.device) == ["phone", "phone", "phone", "phone", "phone", nil, nil])
        #expect(stage.presence("u", "v").isEmpty, "a question about several is about those who are there")
    }

    @Test("a subscription that a reload reports again is no change")
    func reloaded() throws {
        let stage = try Stage()
        stage.attach(Self.first)
        stage.attach(Self.first, ticket: nil)
        #expect(stage.presence("u")["u"]?.changes.map(\.kind) == [.opened])
    }

    @Test("the oldest changes of a person, and the people without a change for longest, are forgotten")
    func bounds() {
        var log = PresenceLog(peopleMax: 3)
        func note(_ number: Int, user: String) {
            log.note(PresenceChange(at: Int64(number), .opened, device: nil), app: "1", channel: "c", user: user, now: Int64(number))
        }
        for number in 0..<40 { note(number, user: "u") }
        let kept = log.changes(app: "1", channel: "c", user: "u").map(\.at)
        #expect(kept == Array(24..<40))
        for (number, user) in ["v", "w", "x"].enumerated() { note(100 + number, user: user) }
        #expect(log.count == 3 && log.changes(app: "1", channel: "c", user: "u").isEmpty)
        note(200 + Int(PresenceLog.ageMax), user: "y")
        #expect(log.count == 1)
    }

    @Test("channels that go to another owner are forgotten")
    func kept() throws {
        let stage = try Stage()
        stage.attach(Self.first)
        _ = stage.book.keep { _, channel in channel != Self.channel }
        #expect(stage.presence("u").isEmpty && stage.book.changes.count == 0)
    }
}
