import HubCore
import HubTesting
import PusherProtocol
import Testing

@testable import HubChannels

@Suite("Cache channels")
struct CacheTests {
    private static let kinds = ["cache-a", "private-cache-a", "private-encrypted-cache-a", "presence-cache-a"]

    @Test("C17: acknowledged, then the last event, or cache_miss when there is none", arguments: kinds)
    func cached(channel: String) throws {
        let hub = TestHub(loops: 3)
        let early = hub.open(1)
        hub.subscribe(early, channel, user: channel.hasPrefix("presence") ? "1" : nil)
        hub.settle()
        #expect(early.frames.suffix(2).map { $0["event"] } == ["pusher_internal:subscription_succeeded", "pusher:cache_miss"])
        #expect(early.frames.last?["data"] == "{}" && early.frames.last?["channel"] == .string(channel))
        hub.publish("first", on: [channel], from: 0, data: "1")
        hub.publish("second", on: [channel, "other"], from: 2, data: #"not "JSON""#)
        hub.settle()
        #expect(early.published(on: channel).count == 2)
        for loop in 0..<3 {
            let late = hub.open(loop)
            hub.subscribe(late, channel, user: channel.hasPrefix("presence") ? "2" : nil)
            hub.settle()
            let frames = late.frames.suffix(2)
            #expect(frames.map { $0["event"] } == ["pusher_internal:subscription_succeeded", "second"])
            #expect(frames.last?["data"] == #"not "JSON""# && frames.last?["channel"] == .string(channel))
            let name = try #require(ChannelName(channel))
            let cached = try #require(hub.engines[loop].cachedEvent(app: 0, channel: name))
            #expect(cached.data == #"not "JSON""# && cached.secondsLeft == 1800)
        }
        #expect(hub.violations.isEmpty)
    }

    @Test("C17: only published events are cached, no client event, nothing of other channels or apps")
    func notCached() {
        let hub = TestHub()
        let (sender, late) = (hub.open(), hub.open())
        hub.subscribe(sender, "private-cache-a")
        hub.say(sender, event: "client-x", channel: "private-cache-a", data: "y")
        hub.publish("e", on: ["private-cache-b", "cachet"])
        hub.subscribe(late, "private-cache-a")
        let other = hub.open(key: "other")
        hub.say(other, event: "pusher:subscribe", data: ["channel": "cache-z"])
        hub.publish("e", on: ["cache-z"])
        let again = hub.open(key: "other")
        hub.say(again, event: "pusher:subscribe", data: ["channel": "cache-z"])
        hub.settle()
        #expect(late.named("pusher:cache_miss").count == 1)
        #expect(again.named("pusher:cache_miss").count == 1, "another app's event")
        #expect(hub.violations.isEmpty)
    }

    @Test("C17: an event is kept for half an hour and not longer")
    func lifetime() {
        let hub = TestHub()
        hub.publish("e", on: ["cache-a"])
        hub.clock.advance(seconds: 1799)
        let inTime = hub.open()
        hub.subscribe(inTime, "cache-a")
        hub.clock.advance(seconds: 1)
        let late = hub.open()
        hub.subscribe(late, "cache-a")
        #expect(inTime.published(on: "cache-a") == ["e"])
        #expect(late.published(on: "cache-a").isEmpty && late.named("pusher:cache_miss").count == 1)
    }

    @Test("the excluded sender gets the cached event when it subscribes later; a repeated subscribe gets nothing")
    func excluded() {
        let hub = TestHub()
        let sender = hub.open()
        hub.publish("e", on: ["cache-a"], excluded: sender)
        hub.subscribe(sender, "cache-a")
        hub.subscribe(sender, "cache-a")
        #expect(sender.published(on: "cache-a") == ["e"])
    }

    @Test("publishes taken at the same time on different loops leave the same event everywhere", arguments: 1...50)
    func agreement(seed: UInt64) throws {
        let hub = TestHub(loops: 4, seed: seed)
        for event in 0..<20 {
            hub.publish("e\(event)", on: ["cache-a"], from: hub.random.below(4), data: "\(event)")
            for _ in 0..<hub.random.below(4) { hub.step() }
        }
        hub.settle()
        let name = try #require(ChannelName("cache-a"))
        #expect(Set(hub.engines.map { $0.cachedEvent(app: 0, channel: name)?.data }) == ["19"])
    }

    @Test("a subscriber on its way in loses nothing: cached event and what follows are one sequence", arguments: 1...50)
    func race(seed: UInt64) {
        let hub = TestHub(loops: 3, seed: seed)
        var clients: [TestClient] = []
        for event in 0..<30 {
            hub.publish("\(event)", on: ["presence-cache-a"], from: 0)
            if event % 5 == 2 {
                let client = hub.open(hub.random.below(3))
                hub.subscribe(client, "presence-cache-a", user: .string("\(event)"))
                clients.append(client)
            }
            for _ in 0..<hub.random.below(6) { hub.step() }
        }
        hub.settle()
        for client in clients {
            let events = client.published(on: "presence-cache-a").compactMap(Int.init)
            #expect(events == Array((events.first ?? -1)...29), "without a gap from the cached one on")
        }
        #expect(hub.violations.isEmpty)
    }

    @Test("the cache has a bound in bytes: the oldest event goes first")
    func bound() {
        var cache = EventCache()
        let frame = [UInt8](repeating: 0, count: 1 << 20)
        func key(_ index: Int) -> ChannelKey {
            guard let name = ChannelName("cache-\(index)") else { preconditionFailure("a bad name") }
            return ChannelKey(app: 0, name: name)
        }
        for index in 0..<200 { cache.store(frame, order: UInt64(index), for: key(index), now: 1) }
        #expect(cache.byteCount <= EventCache.bytesMax)
        #expect(cache.event(for: key(199), now: 2) != nil && cache.event(for: key(0), now: 2) == nil)
        for round in 0..<100_000 { cache.store([1], order: UInt64(1000 + round), for: key(199), now: 3) }
        #expect(cache.queuedCount < 5000, "an often replaced event leaves no trail")
        _ = cache.event(for: key(1), now: 3 + EventCache.lifetimeSeconds * 1_000_000_000)
        #expect(cache.byteCount == 0)
    }
}
