import HubCore
import HubJSON
import PusherProtocol
import Testing

@testable import HubChannels

@Suite("Subscribing")
struct SubscribingTests {
    @Test(
        "C08: a public subscribe is acknowledged once, whatever its auth",
        arguments: ["", #","auth":"""#, #","auth":null"#, #","auth":"x","channel_data":"y""#])
    func publicAuth(rest: String) {
        let hub = TestHub()
        let client = hub.open()
        hub.say(client, #"{"event":"pusher:subscribe","data":{"channel":"news"\#(rest)}}"#)
        #expect(client.texts.last == #"{"event":"pusher_internal:subscription_succeeded","channel":"news","data":"{}"}"#)
        #expect(client.frames.count == 2)
        #expect(hub.summary("news") == HomeRegistry.Summary(userCount: 0, subscriptionCount: 1))
    }

    @Test(
        "every kind of channel is acknowledged with exactly {}",
        arguments: [
            "news", "cache-a", "private-a", "private-", "private-cache-a", "private-encrypted-a", "private-encrypted-cache-a", "privateers",
            String(repeating: "x", count: 200),
        ])
    func kinds(channel: String) {
        let hub = TestHub(loops: 3)
        let client = hub.open(1)
        hub.subscribe(client, channel)
        hub.settle()
        #expect(client.named("pusher_internal:subscription_succeeded", on: channel).map { $0["data"] } == ["{}"])
        #expect(hub.summary(channel)?.subscriptionCount == 1)
        #expect(hub.violations.isEmpty)
    }

    @Test(
        "C09, C11: a signature that is not right refuses the subscription with both events and nothing else",
        arguments: [
            "private-a", "presence-a", "private-encrypted-a", "private-cache-a",
        ])
    func refused(channel: String) {
        let hub = TestHub(loops: 2)
        let client = hub.open()
        let stranger = hub.open()
        let data = channel.hasPrefix("presence") ? #"{"user_id":"10"}"# : nil
        let right = hub.auth(client, channel, data)
        let flipped = String(right.dropLast()) + (right.hasSuffix("0") ? "1" : "0")
        let attempts: [String?] = [
            flipped, hub.auth(stranger, channel, data), hub.auth(client, channel, data, key: "other", secret: "other-secret"),
            hub.auth(client, channel, data, secret: "wrong"), hub.auth(client, channel, data, key: "key2"),
            hub.auth(client, channel + "b", data),
            String(right.dropFirst(4)), right.uppercased(), "key:", ":", "key", "", nil, right + " ",
            hub.auth(client, channel, (data ?? "") + " "),
        ]
        for attempt in attempts {
            client.forget()
            var members: [String: JSONValue] = ["channel": .string(channel)]
            members["auth"] = attempt.map { .string($0) }
            members["channel_data"] = data.map { .string($0) }
            hub.say(client, event: "pusher:subscribe", data: .object(members))
            hub.settle()
            #expect(client.frames.count == 3, "\(attempt ?? "nil")")
            #expect(client.errors.map { $0["code"] } == [.null])
            let refusal = client.named("pusher:subscription_error", on: channel)
            #expect(refusal.count == 1)
            #expect(TestClient.data(refusal.first ?? .null)["status"] == 401)
        }
        #expect(client.closeCode == nil)
        #expect(hub.summary(channel) == nil)
        hub.subscribe(client, channel, user: data == nil ? nil : "10")
        hub.settle()
        #expect(client.acknowledgements(channel) == 1, "usable afterwards")
        #expect(hub.violations.isEmpty)
    }

    @Test("every key of the app signs, as keys are rotated")
    func rotation() {
        let hub = TestHub()
        let client = hub.open(key: "key2")
        hub.say(
            client, event: "pusher:subscribe",
            data: ["channel": "private-a", "auth": .string(hub.auth(client, "private-a", key: "key2", secret: "secret2"))])
        hub.subscribe(client, "private-b")
        #expect(client.acknowledgements("private-a") == 1)
        #expect(client.acknowledgements("private-b") == 1)
    }

    @Test(
        "names that break the rule are refused with 400",
        arguments: ["", "a b", "a/b", "#server-to-user-", "ä", String(repeating: "x", count: 201), "a\"b"])
    func names(channel: String) {
        let hub = TestHub()
        let client = hub.open()
        hub.say(client, event: "pusher:subscribe", data: ["channel": .string(channel)])
        #expect(client.errors.count == 1)
        #expect(TestClient.data(client.named("pusher:subscription_error").first ?? .null)["status"] == 400)
        #expect(client.closeCode == nil)
        #expect(hub.violations.isEmpty)
    }

    @Test("a repeated subscribe changes nothing; unsubscribing from what is not there neither")
    func repeated() {
        let hub = TestHub(loops: 2)
        let client = hub.open()
        for channel in ["news", "presence-a"] {
            for _ in 0..<3 { hub.subscribe(client, channel, user: "10") }
            hub.settle()
            for _ in 0..<3 { hub.subscribe(client, channel, user: "10") }
            hub.settle()
            #expect(client.acknowledgements(channel) == 1)
            #expect(hub.summary(channel)?.subscriptionCount == 1)
        }
        hub.unsubscribe(client, "never")
        hub.unsubscribe(client, "")
        hub.publish("e", on: ["news"])
        hub.settle()
        #expect(client.published(on: "news") == ["e"])
        #expect(client.errors.isEmpty)
        #expect(hub.violations.isEmpty)
    }

    @Test("nothing arrives after an unsubscribe, and what was published before it does")
    func unsubscribed() {
        let hub = TestHub()
        let (client, other) = (hub.open(), hub.open())
        for one in [client, other] { hub.subscribe(one, "news") }
        hub.publish("before", on: ["news"])
        hub.unsubscribe(client, "news")
        hub.publish("after", on: ["news"])
        hub.settle()
        #expect(client.published(on: "news") == ["before"])
        #expect(other.published(on: "news") == ["before", "after"])
        hub.unsubscribe(other, "news")
        #expect(hub.summary("news") == nil)
        #expect(hub.violations.isEmpty)
    }

    @Test("nobody gets an event that was published before its acknowledgement")
    func notBefore() {
        let hub = TestHub()
        let early = hub.open()
        hub.subscribe(early, "news")
        hub.publish("first", on: ["news"])
        let late = hub.open()
        hub.subscribe(late, "news")
        hub.publish("second", on: ["news"])
        hub.settle()
        #expect(early.published(on: "news") == ["first", "second"])
        #expect(late.published(on: "news") == ["second"])
        #expect(hub.violations.isEmpty)
    }

    @Test("a connection has its cap of subscriptions, and a place again after leaving one")
    func cap() {
        let hub = TestHub()
        let client = hub.open()
        for number in 0..<ChannelEngine.subscriptionsMax { hub.subscribe(client, "c\(number)") }
        hub.subscribe(client, "one-more")
        #expect(client.errors.count == 1)
        #expect(TestClient.data(client.named("pusher:subscription_error", on: "one-more").first ?? .null)["status"] == 403)
        hub.unsubscribe(client, "c7")
        hub.subscribe(client, "one-more")
        #expect(client.acknowledgements("one-more") == 1)
    }

    @Test("a connection's end ends its subscriptions and nobody else's; apps do not see each other")
    func closing() {
        let hub = TestHub(loops: 2)
        let (first, second) = (hub.open(0), hub.open(1))
        let foreign = hub.open(1, key: "other")
        for one in [first, second, foreign] { hub.subscribe(one, "news") }
        hub.settle()
        #expect(hub.summary("news")?.subscriptionCount == 2)
        hub.close(first)
        hub.publish("e", on: ["news"])
        hub.settle()
        #expect(second.published(on: "news") == ["e"])
        #expect(foreign.published(on: "news").isEmpty)
        #expect(hub.summary("news")?.subscriptionCount == 1)
        hub.close(second)
        hub.settle()
        #expect(hub.summary("news") == nil)
        #expect(hub.violations.isEmpty)
    }
}
