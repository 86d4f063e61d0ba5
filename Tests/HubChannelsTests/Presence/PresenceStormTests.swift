import HubCore
import HubTesting
import PusherProtocol
import Testing

@testable import HubChannels

@Suite("Presence when many come and go at once")
struct PresenceStormTests {
    private static let channel = "presence-big"
    private static let linger = 3000

    /// `count` members over all loops, everything told and forgotten.
    private func filled(_ hub: TestHub, _ count: Int) -> [TestClient] {
        let clients = (0..<count).map { hub.open($0 % hub.engines.count) }
        for (index, client) in clients.enumerated() { hub.subscribe(client, Self.channel, user: .string("u\(index)")) }
        hub.settle()
        for client in clients { client.forget() }
        for sink in hub.sinks { sink.forgetDeliveries() }
        return clients
    }

    private func edges(_ client: TestClient) -> [String] {
        client.frames.compactMap { frame in
            let user = TestClient.data(frame)["user_id"]?.stringValue ?? ""
            switch frame["event"] {
            case "pusher_internal:member_added": return "+\(user)"
            case "pusher_internal:member_removed": return "-\(user)"
            default: return nil
            }
        }
    }

    /// Each newcomer had its own write to everybody, and each leaver as well: a channel that filled was quadratic in writes.
    @Test("who comes in one turn is told in one write to each who was there, and they all get one list")
    func together() {
        let hub = TestHub()
        let inside = filled(hub, 20)
        let newcomers = (0..<30).map { _ in hub.open() }
        for (index, client) in newcomers.enumerated() { hub.subscribe(client, Self.channel, user: .string("new\(index)")) }
        hub.settle()
        #expect(hub.sinks[0].deliveries.map(\.slots.count) == [20])
        #expect(inside.allSatisfy { edges($0) == (0..<30).map { "+new\($0)" } })
        let everybody = Set((0..<20).map { "u\($0)" } + (0..<30).map { "new\($0)" })
        #expect(
            newcomers.allSatisfy { $0.members[Self.channel] == everybody && edges($0).isEmpty && $0.acknowledgements(Self.channel) == 1 })
        for sink in hub.sinks { sink.forgetDeliveries() }
        for client in newcomers { hub.close(client) }
        hub.settle()
        #expect(hub.sinks[0].deliveries.map(\.slots.count) == [20])
        #expect(inside.allSatisfy { $0.members[Self.channel] == Set((0..<20).map { "u\($0)" }) })
        #expect(hub.violations.isEmpty)
    }

    @Test("who leaves and is back within the turn never left for the others; who only looked in was never there")
    func withinTheTurn() {
        let hub = TestHub()
        let inside = filled(hub, 3)
        hub.close(inside[0])
        let back = hub.open()
        hub.subscribe(back, Self.channel, user: "u0")
        let visitor = hub.open()
        hub.subscribe(visitor, Self.channel, user: "visitor")
        hub.unsubscribe(visitor, Self.channel)
        hub.settle()
        #expect(edges(inside[1]).isEmpty && edges(inside[2]).isEmpty)
        #expect(back.members[Self.channel] == ["u0", "u1", "u2"])
        #expect(visitor.acknowledgements(Self.channel) == 0)
        #expect(hub.users(Self.channel) == ["u0", "u1", "u2"])
        #expect(hub.violations.isEmpty)
    }

    @Test("up to a hundred members, leaving is told at once; above, only when the member is not back in time", arguments: [100, 101])
    func lingering(members: Int) {
        let hub = TestHub(loops: 2) { $0.presenceMembersMax = 1000 }
        let clients = filled(hub, members)
        hub.close(clients[0])
        hub.settle()
        let isLarge = members > Presence.promptMembersMax
        #expect(edges(clients[1]) == (isLarge ? [] : ["-u0"]))
        #expect(!hub.users(Self.channel).contains("u0"), "the HTTP API tells who is there")
        #expect(hub.summary(Self.channel)?.userCount == members - 1)
        guard isLarge else { return }
        hub.clock.advance(milliseconds: Int64(Self.linger - 1))
        hub.settle()
        #expect(edges(clients[1]).isEmpty)
        hub.clock.advance(milliseconds: 1)
        hub.settle()
        #expect(edges(clients[1]) == ["-u0"] && edges(clients[2]) == ["-u0"])
        hub.clock.advance(seconds: 60)
        hub.settle()
        #expect(edges(clients[1]) == ["-u0"])
        #expect(hub.violations.isEmpty)
    }

    @Test("members of a large channel who return in time cause no frame but their own acknowledgement")
    func returning() {
        let hub = TestHub(loops: 3) {
            $0.presenceMembersMax = 300
            $0.factKinds = [.memberAdded, .memberRemoved]
        }
        let clients = filled(hub, 300)
        _ = hub.takeFacts()
        for client in clients[150...] { hub.close(client) }
        hub.settle()
        hub.clock.advance(milliseconds: Int64(Self.linger - 1))
        // Full again: who lingers has no place any more.
        let others = (0..<2).map { _ in hub.open() }
        hub.subscribe(others[0], Self.channel, user: "other")
        let back = (151..<300).map { _ in hub.open(Int.random(in: 0..<3)) }
        for (index, client) in back.enumerated() { hub.subscribe(client, Self.channel, user: .string("u\(151 + index)")) }
        hub.settle()
        hub.subscribe(others[1], Self.channel, user: "too many")
        hub.settle()
        #expect(others[1].acknowledgements(Self.channel) == 0 && others[0].acknowledgements(Self.channel) == 1)
        #expect(clients[..<150].allSatisfy { edges($0) == ["+other"] })
        #expect(back.allSatisfy { $0.members[Self.channel]?.count == 301 }, "u150 lingers, and its removal is still to come")
        hub.clock.advance(milliseconds: 1)
        hub.settle()
        #expect((clients[..<150] + back).allSatisfy { edges($0).suffix(1) == ["-u150"] && $0.members[Self.channel]?.count == 300 })
        #expect(hub.users(Self.channel).count == 300)
        #expect(hub.takeFacts().count == 150 + 149 + 1, "webhooks have a delay of their own")
        #expect(hub.violations.isEmpty)
    }

    @Test("who leaves, returns and leaves again lingers from the last time")
    func again() {
        let hub = TestHub { $0.presenceMembersMax = 1000 }
        let clients = filled(hub, 150)
        hub.close(clients[0])
        hub.settle()
        hub.clock.advance(milliseconds: 2000)
        let back = hub.open()
        hub.subscribe(back, Self.channel, user: "u0")
        hub.settle()
        hub.close(back)
        hub.settle()
        hub.clock.advance(milliseconds: 2999)
        hub.settle()
        #expect(edges(clients[1]).isEmpty)
        hub.clock.advance(milliseconds: 1)
        hub.settle()
        #expect(edges(clients[1]) == ["-u0"])
        #expect(hub.violations.isEmpty)
    }

    @Test("a channel that everybody left forgets who lingers")
    func emptied() {
        let hub = TestHub(loops: 2) { $0.presenceMembersMax = 1000 }
        for client in filled(hub, 150) { hub.close(client) }
        hub.settle()
        #expect(hub.summary(Self.channel) == nil)
        let first = hub.open()
        hub.subscribe(first, Self.channel, user: "first")
        hub.settle()
        #expect(first.members[Self.channel] == ["first"])
        hub.clock.advance(seconds: 10)
        hub.settle()
        #expect(edges(first).isEmpty && hub.violations.isEmpty)
    }

    @Test("lists converge however many come and go, with lingering members among them")
    func interleavings() {
        let base = UInt64.random(in: 1...UInt64.max / 2)
        for seed in base..<base + 10 {
            let hub = TestHub(loops: 3, seed: seed) { $0.presenceMembersMax = 1000 }
            var clients = filled(hub, 110)
            for _ in 0..<400 {
                let index = hub.random.below(clients.count)
                switch hub.random.below(8) {
                case 0...2: hub.subscribe(clients[index], Self.channel, user: .string("u\(hub.random.below(120))"))
                case 3: hub.unsubscribe(clients[index], Self.channel)
                case 4:
                    hub.close(clients[index])
                    clients[index] = hub.open(hub.random.below(3))
                case 5: hub.engines[hub.random.below(3)].flush()
                case 6: hub.clock.advance(milliseconds: Int64(hub.random.below(1500)))
                default: for _ in 0...hub.random.below(4) { hub.step() }
                }
            }
            hub.settle()
            hub.clock.advance(seconds: 10)
            hub.settle()
            let users = hub.users(Self.channel)
            let inside = clients.filter { $0.members[Self.channel] != nil }
            #expect(inside.allSatisfy { $0.members[Self.channel] == users }, "seed \(seed)")
            #expect((hub.summary(Self.channel)?.subscriptionCount ?? 0) == inside.count, "seed \(seed)")
            #expect(hub.violations.isEmpty, "seed \(seed): \(hub.violations.prefix(3))")
        }
    }
}
