import HubCore
import HubJSON
import PusherProtocol
import Testing

@testable import HubChannels

@Suite("Presence channels")
struct PresenceTests {
    static let channel = "presence-room"

    @Test("C12: the joiner is in its own list; two sockets of a user are one member, added once and removed once")
    func members() throws {
        let hub = TestHub(loops: 2)
        let (first, again, other) = (hub.open(0), hub.open(1), hub.open(0))
        hub.subscribe(other, Self.channel, user: "11")
        hub.settle()
        hub.subscribe(first, Self.channel, user: "10", info: ["name": "A"])
        hub.settle()
        let presence = try #require(TestClient.data(first.named("pusher_internal:subscription_succeeded")[0])["presence"])
        #expect(Set(presence["ids"]?.arrayValue ?? []) == ["10", "11"])
        #expect(presence["hash"] == ["10": ["name": "A"], "11": .null])
        #expect(presence["count"] == 2)
        hub.subscribe(again, Self.channel, user: "10", info: ["name": "B"])
        hub.settle()
        #expect(other.named("pusher_internal:member_added").map(TestClient.data) == [["user_id": "10", "user_info": ["name": "A"]]])
        #expect(first.named("pusher_internal:member_added").isEmpty)
        hub.close(first)
        hub.settle()
        #expect(other.named("pusher_internal:member_removed").isEmpty)
        let late = hub.open(1)
        hub.subscribe(late, Self.channel, user: "12")
        hub.settle()
        let lateList = TestClient.data(late.named("pusher_internal:subscription_succeeded")[0])["presence"]
        #expect(lateList?["hash"]?["10"] == ["name": "B"], "the info of the most recent join")
        hub.unsubscribe(again, Self.channel)
        hub.settle()
        #expect(other.named("pusher_internal:member_removed").map(TestClient.data) == [["user_id": "10"]])
        #expect(again.named("pusher_internal:member_removed").isEmpty)
        #expect(hub.summary(Self.channel) == HomeRegistry.Summary(userCount: 2, subscriptionCount: 2))
        #expect(hub.violations.isEmpty)
    }

    @Test("C13: a number and a string of the same value are one member")
    func numeric() {
        let hub = TestHub()
        let (first, second) = (hub.open(), hub.open())
        hub.subscribe(first, Self.channel, user: 10)
        hub.subscribe(second, Self.channel, user: "10")
        hub.settle()
        #expect(second.members[Self.channel] == ["10"])
        #expect(first.named("pusher_internal:member_added").isEmpty)
        #expect(hub.users(Self.channel) == ["10"])
    }

    @Test(
        "channel_data that names nobody is refused",
        arguments: ["", "{}", "[]", "x", #"{"user_id":null}"#, #"{"user_id":""}"#, #"{"user_id":{}}"#])
    func badData(channelData: String) {
        let hub = TestHub()
        let client = hub.open()
        hub.say(
            client, event: "pusher:subscribe",
            data: [
                "channel": .string(Self.channel), "auth": .string(hub.auth(client, Self.channel, channelData)),
                "channel_data": .string(channelData),
            ])
        #expect(client.errors.map { $0["code"] } == [.null])
        #expect(client.named("pusher:subscription_error", on: Self.channel).count == 1)
        #expect(hub.summary(Self.channel) == nil)
        hub.subscribe(client, Self.channel, user: "1")
        hub.settle()
        #expect(client.acknowledgements(Self.channel) == 1)
    }

    @Test("C14: at the limit a new user is refused, a further socket of a member is let in")
    func limit() {
        let hub = TestHub(loops: 2) { $0.presenceMembersMax = 2 }
        let inside = [hub.open(0), hub.open(1)]
        for (index, client) in inside.enumerated() { hub.subscribe(client, Self.channel, user: .string("u\(index)")) }
        hub.settle()
        let (refused, further) = (hub.open(0), hub.open(1))
        hub.subscribe(refused, Self.channel, user: "u2")
        hub.subscribe(further, Self.channel, user: "u0")
        hub.settle()
        #expect(refused.acknowledgements(Self.channel) == 0)
        #expect(TestClient.data(refused.named("pusher:subscription_error", on: Self.channel).first ?? .null)["status"] == 403)
        #expect(refused.errors.map { $0["code"] } == [.null])
        #expect(further.acknowledgements(Self.channel) == 1)
        #expect(hub.summary(Self.channel) == HomeRegistry.Summary(userCount: 2, subscriptionCount: 3))
        hub.close(inside[1])
        hub.settle()
        hub.subscribe(refused, Self.channel, user: "u2")
        hub.settle()
        #expect(refused.members[Self.channel] == ["u0", "u2"], "refused once is not refused for ever")
        #expect(hub.violations.isEmpty)
    }

    @Test("a definition's limit of members counts instead of the app's, in both directions", arguments: [1, 200])
    func definedLimit(most: Int) {
        let hub = TestHub(loops: 2, watched: [Self.channel])
        hub.traits = { _ in ChannelTraits(membersMax: most) }
        let clients = (0...most).map { hub.open($0 % 2) }
        for (index, client) in clients.enumerated() { hub.subscribe(client, Self.channel, user: .string("u\(index)")) }
        hub.settle()
        #expect(hub.summary(Self.channel)?.userCount == most)
        #expect(clients.filter { $0.named("pusher:subscription_error").isEmpty }.count == most)
    }

    /// A refused join given up before its answer was once counted out at the channel's home, although never counted in. The home then
    /// forgot loops, or the whole channel, that still had members.
    @Test("who gives up a join that is about to be refused changes nothing for those inside", arguments: [true, false])
    func refusedAndGone(closes: Bool) {
        let hub = TestHub(loops: 2) { $0.presenceMembersMax = 1 }
        let far = 1 - hub.home(Self.channel)
        let inside = hub.open(far)
        hub.subscribe(inside, Self.channel, user: "in")
        hub.settle()
        for number in 0..<3 {
            let outside = hub.open(far)
            hub.subscribe(outside, Self.channel, user: .string("out\(number)"))
            if closes { hub.close(outside) } else { hub.unsubscribe(outside, Self.channel) }
            hub.settle()
            #expect(outside.frames.count == 1)
        }
        #expect(hub.summary(Self.channel) == HomeRegistry.Summary(userCount: 1, subscriptionCount: 1))
        let again = hub.open(far)
        hub.subscribe(again, Self.channel, user: "in")
        hub.settle()
        hub.close(inside)
        hub.settle()
        #expect(hub.users(Self.channel) == ["in"])
        #expect(hub.violations.isEmpty)
    }

    @Test("subscribe, unsubscribe, subscribe while the home's answer is on its way: one acknowledgement, for the last")
    func inFlight() {
        for seed in 1...20 as ClosedRange<UInt64> {
            let hub = TestHub(loops: 3, seed: seed)
            let watcher = hub.open(2)
            hub.subscribe(watcher, Self.channel, user: "watcher")
            hub.settle()
            let client = hub.open((hub.home(Self.channel) + 1) % 3)
            hub.subscribe(client, Self.channel, user: "a")
            hub.unsubscribe(client, Self.channel)
            hub.subscribe(client, Self.channel, user: "b")
            hub.unsubscribe(client, Self.channel)
            hub.subscribe(client, Self.channel, user: "c")
            #expect(client.acknowledgements(Self.channel) == 0)
            hub.settle()
            #expect(client.acknowledgements(Self.channel) == 1)
            #expect(client.members[Self.channel] == ["watcher", "c"])
            #expect(watcher.members[Self.channel] == ["watcher", "c"])
            #expect(hub.summary(Self.channel)?.subscriptionCount == 2)
            #expect(hub.violations.isEmpty, "seed \(seed)")
        }
    }

    @Test("a connection that closes while it joins leaves nothing behind, also when its slot is taken again")
    func closesWhileJoining() {
        let hub = TestHub(loops: 2)
        let far = 1 - hub.home(Self.channel)
        let watcher = hub.open(1 - far)
        hub.subscribe(watcher, Self.channel, user: "watcher")
        hub.settle()
        let client = hub.open(far)
        hub.subscribe(client, Self.channel, user: "gone")
        hub.close(client)
        let heir = hub.open(far)
        #expect(heir.id.slot == client.id.slot)
        hub.subscribe(heir, Self.channel, user: "heir")
        hub.settle()
        #expect(heir.acknowledgements(Self.channel) == 1)
        #expect(heir.members[Self.channel] == ["watcher", "heir"])
        #expect(watcher.members[Self.channel] == ["watcher", "heir"])
        #expect(hub.users(Self.channel) == ["watcher", "heir"])
        #expect(hub.violations.isEmpty)
    }

    @Test("C15: a hundred users join at once over three loops, and every list converges")
    func hundred() {
        let seed = UInt64.random(in: 1...UInt64.max)
        let hub = TestHub(loops: 3, seed: seed)
        let clients = (0..<100).map { hub.open($0 % 3) }
        for (index, client) in clients.enumerated() {
            hub.subscribe(client, Self.channel, user: .int(Int64(index)))
            if hub.random.below(3) == 0 { hub.step() }
        }
        hub.settle()
        let everybody = Set((0..<100).map(String.init))
        #expect(hub.users(Self.channel) == everybody)
        #expect(clients.allSatisfy { $0.members[Self.channel] == everybody }, "seed \(seed)")
        #expect(hub.violations.isEmpty, "seed \(seed)")
    }

    @Test("snapshots and deltas are gap-free however loops, joins, leaves and closes interleave")
    func interleavings() {
        let base = UInt64.random(in: 1...UInt64.max / 2)
        for seed in base..<base + 150 {
            let hub = TestHub(loops: 3, seed: seed) { $0.presenceMembersMax = 4 }
            var clients = (0..<6).map { hub.open($0 % 3) }
            var published = 0
            for _ in 0..<150 {
                let index = hub.random.below(clients.count)
                switch hub.random.below(10) {
                case 0...2: hub.subscribe(clients[index], Self.channel, user: .string("u\(hub.random.below(6))"))
                case 3, 4: hub.unsubscribe(clients[index], Self.channel)
                case 5:
                    hub.close(clients[index])
                    clients[index] = hub.open(hub.random.below(3))
                case 6:
                    hub.publish("e\(published)", on: [Self.channel], from: 0)
                    published += 1
                case 7: hub.engines[hub.random.below(3)].flush()
                default: for _ in 0...hub.random.below(4) { hub.step() }
                }
            }
            hub.settle()
            let users = hub.users(Self.channel)
            let inside = clients.filter { $0.members[Self.channel] != nil }
            #expect(inside.allSatisfy { $0.members[Self.channel] == users }, "seed \(seed): \(users), \(inside.map(\.members))")
            #expect((hub.summary(Self.channel)?.subscriptionCount ?? 0) == inside.count, "seed \(seed)")
            #expect(hub.violations.isEmpty, "seed \(seed): \(hub.violations.prefix(3))")
            if !hub.violations.isEmpty { return }
            for client in hub.everybody {
                let numbers = client.published(on: Self.channel).compactMap { Int($0.dropFirst()) }
                #expect(numbers == numbers.sorted(), "seed \(seed)")
                #expect(Set(numbers).count == numbers.count, "seed \(seed)")
            }
        }
    }
}
