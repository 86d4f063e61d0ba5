import HubCore
import HubTesting
import PusherProtocol
import Testing

@testable import HubChannels

@Suite("FanOut")
struct FanOutTests {
    @Test("one delivery per channel and turn, with everything in it, in order")
    func joined() {
        let hub = TestHub()
        let clients = (0..<3).map { _ in hub.open() }
        for client in clients { hub.subscribe(client, "a") }
        hub.subscribe(clients[0], "b")
        for number in 0..<10 { hub.publish("e\(number)", on: ["a", "b", "empty"]) }
        #expect(hub.sinks[0].deliveries.isEmpty, "nothing before the end of the turn")
        hub.engines[0].flush()
        #expect(hub.sinks[0].deliveries.map(\.frames).sorted() == [10, 20], "one write each, of everything in it")
        #expect(hub.sinks[0].deliveries.map(\.slots.count).sorted() == [1, 2])
        hub.engines[0].flush()
        #expect(hub.sinks[0].deliveries.count == 2, "an empty turn writes nothing")
        #expect(clients[0].published(on: "a") == (0..<10).map { "e\($0)" })
        #expect(clients[0].published(on: "b") == (0..<10).map { "e\($0)" })
        #expect(hub.violations.isEmpty)
    }

    @Test("a connection in several of the turn's channels gets one write, in the order of publishing")
    func gathered() {
        let hub = TestHub()
        // Every set of three channels, some of them twice.
        let clients = (0..<24).map { _ in hub.open() }
        let names = ["a", "b", "c"]
        func isIn(_ client: Int, _ channel: Int) -> Bool { client >> channel & 1 == 1 }
        for (index, client) in clients.enumerated() {
            for (bit, name) in names.enumerated() where isIn(index % 8, bit) { hub.subscribe(client, name) }
        }
        hub.sinks[0].forgetDeliveries()
        for client in clients where client.frames.count > 1 { client.forget() }
        let order = [0, 2, 1, 1, 0, 2, 0]
        for (number, channel) in order.enumerated() { hub.publish("e\(number)", on: [names[channel]]) }
        hub.publish("every", on: ["c", "a", "b"])
        hub.engines[0].flush()
        for (index, client) in clients.enumerated() {
            var expected: [String] = []
            for (number, channel) in order.enumerated() where isIn(index % 8, channel) { expected.append("e\(number)@\(names[channel])") }
            for channel in [2, 0, 1] where isIn(index % 8, channel) { expected.append("every@\(names[channel])") }
            let got = client.frames.dropFirst().map { "\($0["event"]?.stringValue ?? "")@\($0["channel"]?.stringValue ?? "")" }
            #expect(got == expected, "client \(index)")
        }
        #expect(hub.sinks[0].deliveries.count == 7, "one for each set of channels")
        #expect(hub.sinks[0].deliveries.map(\.slots.count) == [Int](repeating: 3, count: 7))
        #expect(hub.violations.isEmpty)
    }

    @Test("random turns: everybody gets what is theirs once, in the order of publishing, in one write", arguments: 1...20)
    func random(seed: UInt64) {
        var random = SeededRandom(state: seed)
        let hub = TestHub()
        let clients = (0..<30).map { _ in hub.open() }
        let names = (0..<12).map { "room-\($0)" }
        var subscribed = [Set<String>](repeating: [], count: clients.count)
        for turn in 0..<30 {
            // Changes among the events of a turn, too: they must not move the border of what is whose.
            var expected = [[String]](repeating: [], count: clients.count)
            for client in clients where client.frames.count > 1 { client.forget() }
            var changed = false
            for number in 0..<random.below(20) {
                let name = names[random.below(names.count)]
                switch random.below(8) {
                case 0:
                    let index = random.below(clients.count)
                    if subscribed[index].insert(name).inserted { hub.subscribe(clients[index], name) }
                    changed = true
                case 1:
                    let index = random.below(clients.count)
                    if subscribed[index].remove(name) != nil { hub.unsubscribe(clients[index], name) }
                    changed = true
                default:
                    let excluded = random.below(3) == 0 ? random.below(clients.count) : -1
                    hub.publish("t\(turn)-\(number)", on: [name], excluded: excluded < 0 ? nil : clients[excluded])
                    for index in clients.indices where index != excluded && subscribed[index].contains(name) {
                        expected[index].append("t\(turn)-\(number)")
                    }
                }
            }
            if !changed { hub.sinks[0].forgetDeliveries() }
            hub.engines[0].flush()
            for (index, client) in clients.enumerated() {
                let got = client.frames.dropFirst().compactMap { $0["event"]?.stringValue }.filter { $0.hasPrefix("t") }
                #expect(got == expected[index], "client \(index), turn \(turn)")
            }
            if !changed {
                let slots = hub.sinks[0].deliveries.flatMap(\.slots)
                #expect(Set(slots).count == slots.count, "a second write to a connection in turn \(turn)")
            }
        }
        #expect(hub.violations.isEmpty)
    }

    @Test("an excluded connection does not cost the others their one write")
    func exclusionIsGathered() {
        let hub = TestHub()
        let clients = (0..<4).map { _ in hub.open() }
        for client in clients { hub.subscribe(client, "a") }
        hub.subscribe(clients[0], "b")
        hub.sinks[0].forgetDeliveries()
        hub.publish("e0", on: ["a"])
        hub.publish("e1", on: ["a"], excluded: clients[1])
        hub.publish("e2", on: ["b", "a"], excluded: clients[2])
        #expect(hub.sinks[0].deliveries.isEmpty, "nothing before the end of the turn")
        hub.engines[0].flush()
        let slots = hub.sinks[0].deliveries.flatMap(\.slots)
        #expect(slots.count == 4 && Set(slots).count == 4, "one write each")
        #expect(clients[0].published(on: "a") == ["e0", "e1", "e2"] && clients[0].published(on: "b") == ["e2"])
        #expect(clients[1].published(on: "a") == ["e0", "e2"])
        #expect(clients[2].published(on: "a") == ["e0", "e1"])
        #expect(clients[3].published(on: "a") == ["e0", "e1", "e2"])
        #expect(hub.violations.isEmpty)
    }

    @Test("the PINGs of several channels go out in the same write as their events, behind them")
    func pingsAreGathered() {
        let hub = TestHub(watched: ["a", "b"])
        let clients = [hub.open(), hub.open()]
        for name in ["a", "b"] { hub.subscribe(clients[0], name) }
        hub.subscribe(clients[1], "b")
        hub.sinks[0].forgetDeliveries()
        for client in clients { client.forget() }
        hub.publish("e0", on: ["a"], receipt: 1)
        hub.publish("e1", on: ["b"], receipt: 2)
        hub.engines[0].flush()
        #expect(hub.sinks[0].deliveries.map(\.slots.count) == [1, 1])
        #expect(clients[0].pings.map(\.after) == [3, 3] && clients[0].pings.count == 2)
        #expect(clients[1].pings.map(\.after) == [2])
        #expect(hub.violations.isEmpty)
    }

    @Test("events of a cache channel are marked as such, unless they have to be confirmed or are not cached")
    func latestOnly() {
        let hub = TestHub()
        let client = hub.open()
        for name in ["cache-a", "cache-b", "plain"] { hub.subscribe(client, name) }
        hub.sinks[0].forgetDeliveries()
        hub.publish("e0", on: ["cache-a"])
        hub.publish("e1", on: ["plain", "cache-b"])
        hub.publish("e2", on: ["cache-a"])
        hub.publish("e3", on: ["cache-a"], receipt: 1)
        hub.engines[0].flush()
        guard let delivery = hub.sinks[0].deliveries.first, hub.sinks[0].deliveries.count == 1 else {
            Issue.record("\(hub.sinks[0].deliveries)")
            return
        }
        #expect(delivery.frames == 6, "five events and a PING")
        #expect(delivery.marked.map(\.event) == ["e0", "e1", "e2"], "the frames that are marked, in order")
        let lines = delivery.marked.map(\.line)
        #expect(lines.count == 3 && lines[0] == lines[2] && lines[0] != lines[1] && !lines.contains(0))
        // Alone in its turn a channel goes another way.
        hub.sinks[0].forgetDeliveries()
        hub.publish("e4", on: ["cache-b"])
        hub.publish("e5", on: ["cache-b"])
        hub.engines[0].flush()
        #expect(hub.sinks[0].deliveries.first?.marked.map(\.event) == ["e4", "e5"])
        #expect(hub.sinks[0].deliveries.first?.marked.map(\.line) == [lines[1], lines[1]])
        #expect(hub.violations.isEmpty)
    }

    @Test("a batch goes out early at 64 KB and the rest at the end of the turn")
    func early() {
        let hub = TestHub()
        let client = hub.open()
        hub.subscribe(client, "a")
        let data = String(repeating: "x", count: 10_000)
        for number in 0..<10 { hub.publish("e\(number)", on: ["a"], data: data) }
        #expect(hub.sinks[0].deliveries.count == 1)
        #expect(hub.sinks[0].deliveries.allSatisfy { $0.bytes >= FanOut.batchBytesMax && $0.bytes < FanOut.batchBytesMax + 11_000 })
        hub.engines[0].flush()
        #expect(hub.sinks[0].deliveries.map(\.frames) == [7, 3])
        #expect(client.published(on: "a") == (0..<10).map { "e\($0)" })
        #expect(hub.violations.isEmpty)
    }

    @Test("C19: an excluded connection is skipped on every loop, and the order is kept")
    func exclusion() {
        let hub = TestHub(loops: 2)
        let clients = (0..<4).map { hub.open($0 % 2) }
        for client in clients { hub.subscribe(client, "a") }
        hub.publish("e0", on: ["a"])
        hub.publish("e1", on: ["a"], excluded: clients[1])
        hub.publish("e2", on: ["a"])
        hub.publish("e3", on: ["a"], excluded: clients[0])
        hub.publish("e4", on: ["a"], excluded: TestClient(ConnectionID(loop: 0, slot: clients[2].id.slot, generation: 77)))
        hub.settle()
        #expect(clients[0].published(on: "a") == ["e0", "e1", "e2", "e4"])
        #expect(clients[1].published(on: "a") == ["e0", "e2", "e3", "e4"])
        for client in clients[2...] { #expect(client.published(on: "a") == ["e0", "e1", "e2", "e3", "e4"]) }
        #expect(hub.violations.isEmpty)
    }

    @Test("C20: names and data arrive byte for byte")
    func bytes() {
        let hub = TestHub()
        let client = hub.open()
        hub.subscribe(client, "a")
        for (name, data) in [
            ("App\\Events\\X", "not json"), (".a:b c", ""), ("e\"", "{\"a\": \"\\u00eb\"}"), ("Zoë", "\u{1}\n"), ("n", "null"),
        ] {
            hub.publish(name, on: ["a"], data: data)
            hub.engines[0].flush()
            #expect(client.frames.last?["event"] == .string(name))
            #expect(client.frames.last?["data"] == .string(data))
        }
        #expect(hub.violations.isEmpty)
    }

    @Test("an audience gets what is for its roles; who has none gets what is for everybody")
    func audiences() throws {
        let hub = TestHub(loops: 2)
        let clients = (0..<4).map { hub.open($0 % 2) }
        for client in clients { hub.subscribe(client, "a") }
        let name = try #require(ChannelName("a"))
        let roles: [RoleSet] = [.role(0), .role(1), [.role(0), .role(1)]]
        for (client, audience) in zip(clients, roles) { hub.engines[client.id.loop].receive(.audience(client.id, channel: name, audience)) }
        hub.publish("r0", on: ["a"], audience: .role(0))
        hub.publish("all", on: ["a"])
        hub.publish("r1", on: ["a"], audience: .role(1))
        hub.publish("r2", on: ["a"], audience: .role(30))
        hub.publish("unmatched", on: ["a"], audience: .unmatched)
        hub.settle()
        #expect(clients.map { $0.published(on: "a") } == [["r0", "all"], ["all", "r1"], ["r0", "all", "r1"], ["all", "unmatched"]])
        // A role belongs to the subscription, and a message for somebody who is gone reaches nobody.
        hub.unsubscribe(clients[0], "a")
        hub.subscribe(clients[0], "a")
        hub.engines[0].receive(.audience(ConnectionID(loop: 0, slot: clients[0].id.slot, generation: 9), channel: name, .role(0)))
        hub.engines[0].receive(.audience(clients[0].id, channel: try #require(ChannelName("never")), .role(0)))
        clients[0].forget()
        hub.publish("r0", on: ["a"], audience: .role(0))
        hub.settle()
        #expect(clients[0].published(on: "a").isEmpty)
        #expect(hub.violations.isEmpty)
    }

    @Test("who subscribed after the cutoff of its loop does not get the event")
    func cutoff() {
        let hub = TestHub(loops: 2, watched: ["a"])
        let early = [hub.open(0), hub.open(1)]
        for client in early { hub.subscribe(client, "a") }
        let cutoff = hub.engines.map(\.lastTicket)
        let late = [hub.open(0), hub.open(1)]
        for client in late { hub.subscribe(client, "a") }
        hub.publish("before", on: ["a"])
        hub.publish("decided", on: ["a"], attendedUpTo: cutoff)
        hub.publish("decided-later", on: ["a"], attendedUpTo: hub.engines.map(\.lastTicket))
        hub.publish("after", on: ["a"])
        hub.settle()
        for client in early { #expect(client.published(on: "a") == ["before", "decided", "decided-later", "after"]) }
        for client in late { #expect(client.published(on: "a") == ["before", "decided-later", "after"]) }
        // A client that leaves and comes back is late as well: the event was decided without this subscription.
        hub.unsubscribe(early[0], "a")
        hub.subscribe(early[0], "a")
        early[0].forget()
        hub.publish("decided", on: ["a"], attendedUpTo: cutoff)
        hub.settle()
        #expect(early[0].published(on: "a").isEmpty)
        #expect(hub.violations.isEmpty)
    }

    @Test("attendance is reported in order, with tickets that grow")
    func attendance() throws {
        let hub = TestHub(watched: ["presence-a", "b"])
        let client = hub.open()
        let stranger = hub.open()
        hub.subscribe(client, "presence-a", user: "10")
        hub.settle()
        hub.subscribe(client, "unwatched")
        hub.subscribe(client, "b")
        hub.unsubscribe(client, "presence-a")
        hub.subscribe(client, "presence-a", user: "11")
        hub.settle()
        hub.subscribe(stranger, "unwatched")
        hub.close(stranger)
        hub.close(client)
        let (a, b) = (try #require(ChannelName("presence-a")), try #require(ChannelName("b")))
        let socketID = try #require(SocketID(client.socketID))
        #expect(
            hub.engines[0].takeReports() == [
                .attached(client.id, socketID, app: 0, channel: a, user: "10", isBrowser: false, ticket: 1),
                .attached(client.id, socketID, app: 0, channel: b, user: nil, isBrowser: false, ticket: 2),
                .detached(client.id, channel: a),
                .attached(client.id, socketID, app: 0, channel: a, user: "11", isBrowser: false, ticket: 3),
                .disconnected(client.id, .abnormal),
            ])
        #expect(hub.engines[0].takeReports().isEmpty)
    }

    @Test("whatever subscribes, leaves and publishes in a turn, each subscriber gets what was published while it was in")
    func random() {
        let base = UInt64.random(in: 1...UInt64.max / 2)
        for seed in base..<base + 40 {
            let hub = TestHub(seed: seed)
            let clients = (0..<5).map { _ in hub.open() }
            var expected = [[String]](repeating: [], count: clients.count)
            for number in 0..<200 {
                let index = hub.random.below(clients.count)
                switch hub.random.below(6) {
                case 0: hub.subscribe(clients[index], "a")
                case 1: hub.unsubscribe(clients[index], "a")
                case 2: hub.engines[0].flush()
                default:
                    let excluded = hub.random.below(4) == 0 ? index : nil
                    hub.publish("e\(number)", on: ["a"], excluded: excluded.map { clients[$0] })
                    for other in clients.indices where other != excluded && clients[other].members["a"] != nil {
                        expected[other].append("e\(number)")
                    }
                }
            }
            hub.settle()
            #expect(clients.map { $0.published(on: "a") } == expected, "seed \(seed)")
            #expect(hub.violations.isEmpty, "seed \(seed): \(hub.violations.prefix(3))")
        }
    }
}
