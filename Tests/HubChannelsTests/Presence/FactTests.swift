import HubCore
import HubTesting
import PusherProtocol
import Testing

@testable import HubChannels

@Suite("Facts for webhooks, and subscription counts")
struct FactTests {
    private static let all = ChannelFact.Kinds(rawValue: .max)

    private func events(_ hub: TestHub, on channel: String? = nil) -> [ChannelFact.Event] {
        hub.takeFacts().filter { channel == nil || $0.channel.text == channel }.map(\.event)
    }

    @Test("occupied by the first, vacated after the last, over all loops", arguments: ["a", "private-a", "cache-a"])
    func occupancy(channel: String) {
        let hub = TestHub(loops: 3) { $0.factKinds = [.occupied, .vacated] }
        let clients = (0..<6).map { hub.open($0 % 3) }
        for client in clients { hub.subscribe(client, channel) }
        hub.settle()
        #expect(events(hub) == [.occupied])
        for client in clients.dropLast() { hub.close(client) }
        hub.settle()
        #expect(events(hub).isEmpty)
        hub.unsubscribe(clients[5], channel)
        hub.settle()
        #expect(events(hub) == [.vacated])
    }

    @Test("members once per user, between occupied and vacated")
    func members() {
        let hub = TestHub(loops: 2) { $0.factKinds = Self.all.subtracting(.subscriptionCount) }
        let (ann, annToo, bob) = (hub.open(0), hub.open(1), hub.open(1))
        hub.subscribe(ann, "presence-a", user: "ann")
        hub.settle()
        hub.subscribe(annToo, "presence-a", user: "ann")
        hub.subscribe(bob, "presence-a", user: 7)
        hub.settle()
        #expect(events(hub) == [.occupied, .memberAdded(user: "ann"), .memberAdded(user: "7")])
        hub.close(ann)
        hub.close(bob)
        hub.settle()
        #expect(events(hub) == [.memberRemoved(user: "7")])
        hub.close(annToo)
        hub.settle()
        #expect(events(hub) == [.memberRemoved(user: "ann"), .vacated])
    }

    @Test("each accepted client event, with the member's id on presence channels only; a refused one is none")
    func clientEvents() throws {
        let hub = TestHub {
            $0.factKinds = .clientEvent
            $0.clientEventsPerSecond = 2
        }
        let client = hub.open()
        let socketID = try #require(SocketID(client.socketID))
        hub.subscribe(client, "private-a")
        hub.subscribe(client, "presence-a", user: "ann")
        hub.settle()
        hub.say(client, event: "client-x", channel: "private-a", data: ["a": 1])
        hub.say(client, event: "client-y", channel: "presence-a", data: "text")
        hub.say(client, event: "client-z", channel: "presence-a", data: "too many")
        hub.settle()
        #expect(
            events(hub) == [
                .clientEvent(name: "client-x", data: #"{"a":1}"#, socketID: socketID, user: nil),
                .clientEvent(name: "client-y", data: "text", socketID: socketID, user: "ann"),
            ])
    }

    @Test("an empty cache met, and nothing of server-to-user channels")
    func others() {
        let hub = TestHub {
            $0.factKinds = Self.all
            $0.subscriptionCount = true
        }
        let client = hub.open()
        hub.signIn(client, id: "1")
        hub.subscribe(client, "#server-to-user-1")
        hub.settle()
        #expect(events(hub).isEmpty)
        hub.subscribe(client, "cache-a")
        hub.settle()
        #expect(events(hub) == [.occupied, .cacheMiss, .subscriptionCount(1)])
    }

    @Test("what no webhook wants is not made")
    func unwanted() {
        let hub = TestHub()
        let client = hub.open()
        hub.subscribe(client, "presence-a", user: "1")
        hub.settle()
        #expect(events(hub).isEmpty)
    }

    @Test("subscribers are told their number after the acknowledgement and at every change; not on presence and encrypted channels")
    func counts() {
        let hub = TestHub(loops: 2) { $0.subscriptionCount = true }
        let (first, second) = (hub.open(0), hub.open(1))
        for channel in ["a", "private-encrypted-a"] { hub.subscribe(first, channel) }
        hub.subscribe(first, "presence-a", user: "1")
        hub.settle()
        #expect(
            first.frames.filter { $0["channel"] == "a" }.map { $0["event"] } == [
                "pusher_internal:subscription_succeeded", "pusher_internal:subscription_count",
            ])
        hub.subscribe(second, "a")
        hub.settle()
        hub.unsubscribe(second, "a")
        hub.settle()
        #expect(first.named("pusher_internal:subscription_count").map(TestClient.data) == [1, 2, 1].map { ["subscription_count": $0] })
        #expect(first.named("pusher_internal:subscription_count").allSatisfy { $0["channel"] == "a" })
        #expect(second.named("pusher_internal:subscription_count").map(TestClient.data) == [["subscription_count": 2]])
        #expect(hub.violations.isEmpty)
        let quiet = TestHub()
        let client = quiet.open()
        quiet.subscribe(client, "a")
        quiet.settle()
        #expect(client.named("pusher_internal:subscription_count").isEmpty, "off by default")
    }

    @Test("above a hundred subscribers the number is told every five seconds while it changes, and the last one always")
    func throttled() {
        let hub = TestHub(loops: 2) { $0.subscriptionCount = true }
        let watcher = hub.open(0)
        hub.subscribe(watcher, "a")
        hub.settle()
        for index in 0..<150 {
            hub.subscribe(hub.open(index % 2), "a")
            hub.settle()
        }
        func counts() -> [JSONValue?] {
            watcher.named("pusher_internal:subscription_count").map { TestClient.data($0)["subscription_count"] }
        }
        #expect(counts() == (1...100).map { .int(Int64($0)) }, "the hundred and first comes within five seconds of the hundredth")
        hub.clock.advance(milliseconds: 4999)
        hub.settle()
        #expect(counts().count == 100)
        hub.clock.advance(milliseconds: 1)
        hub.settle()
        #expect(counts().last == 151 && counts().count == 101)
        hub.clock.advance(seconds: 60)
        hub.settle()
        #expect(counts().count == 101, "nothing changed, nothing is told")
        hub.subscribe(hub.open(1), "a")
        hub.settle()
        #expect(counts().last == 152, "after a pause a change is told at once")
    }

    @Test("limits of the whole server and of one address close with 4100, after the app's own with 4004")
    func limits() {
        var limits = ConnectionLimits()
        limits.connectionsMax = 4
        limits.perAddressMax = 2
        let hub = TestHub(loops: 2, limits: limits) { $0.connectionsMax = 3 }
        let (first, second, third) = (hub.open(0, address: "10.0.0.1"), hub.open(1, address: "10.0.0.1"), hub.open(0, address: "10.0.0.1"))
        #expect(first.closeCode == nil && second.closeCode == nil)
        #expect(third.closeCode == 4100 && third.frames.map { $0["event"] } == ["pusher:error"])
        let (fourth, overApp) = (hub.open(0, address: "10.0.0.2"), hub.open(0, address: "10.0.0.3"))
        #expect(fourth.closeCode == nil && overApp.closeCode == 4004)
        let (other, overAll) = (hub.open(1, key: "other", address: "10.0.0.4"), hub.open(1, key: "other", address: "10.0.0.5"))
        #expect(other.closeCode == nil && overAll.closeCode == 4100)
        hub.close(first)
        #expect(hub.open(1, address: "10.0.0.1").closeCode == nil, "one left, one may come")
        for app in hub.directory.apps.prefix(1) { #expect(hub.directory.connectionCount(app) == 3) }
    }
}
