import HubCrypto
import HubDelivery
import HubTesting
import HubWebhooks
import PusherProtocol
import Testing

@Suite("WebhookBatch")
struct WebhookBatchTests {
    @Test("V11: the body and its signature are those of the vector")
    func vector() throws {
        let fact = try ChannelFact.fact("my-channel", .occupied)
        let batch = WebhookEndpoint.sample("http://h.example/x")
            .batch(timeMilliseconds: 1_327_078_148_132, events: WebhookText.event(fact))
        #expect(
            String(decoding: batch.body, as: UTF8.self)
                == #"{"time_ms":1327078148132,"events":[{"name":"channel_occupied","channel":"my-channel"}]}"#)
        #expect(batch.signature == "c19001ae3963ccb13bf618e5b16ba9848e7e74df0993aa0689168e341c6833cf")
        #expect(batch.key == WebhookEndpoint.sampleKey && batch.app == "1" && batch.url == "http://h.example/x")
    }

    @Test("every kind has the members that the protocol says")
    func members() throws {
        func text(_ channel: String, _ event: ChannelFact.Event) throws -> String {
            String(decoding: WebhookText.event(try .fact(channel, event)), as: UTF8.self)
        }
        #expect(try text("a", .vacated) == #"{"name":"channel_vacated","channel":"a"}"#)
        #expect(
            try text("presence-a", .memberAdded(user: "ada")) == #"{"name":"member_added","channel":"presence-a","user_id":"ada"}"#)
        #expect(
            try text("presence-a", .memberRemoved(user: #"a"1\"#))
                == #"{"name":"member_removed","channel":"presence-a","user_id":"a\"1\\"}"#)
        #expect(try text("cache-a", .cacheMiss) == #"{"name":"cache_miss","channel":"cache-a"}"#)
        #expect(
            try text("a", .subscriptionCount(7)) == #"{"name":"subscription_count","channel":"a","subscription_count":7}"#)
        let socket = SocketID(first: 12, second: 34)
        #expect(
            try text("presence-a", .clientEvent(name: "client-x", data: #"{"a":"\n"}"#, socketID: socket, user: "ada"))
                == #"{"name":"client_event","channel":"presence-a","event":"client-x","data":"{\"a\":\"\\n\"}","#
                + #""socket_id":"12.34","user_id":"ada"}"#)
        // A signed-in user of a private channel is no member of it.
        #expect(
            try text("private-a", .clientEvent(name: "client-x", data: "ä\u{0}", socketID: socket, user: "ada"))
                == #"{"name":"client_event","channel":"private-a","event":"client-x","data":"ä\u0000","socket_id":"12.34"}"#)
    }

    @Test("the secret is in no description")
    func secrecy() {
        let endpoint = WebhookEndpoint.sample("http://h.example/x")
        var dumped = ""
        dump(endpoint, to: &dumped)
        for text in ["\(endpoint)", String(reflecting: endpoint), dumped] {
            #expect(!text.contains(WebhookEndpoint.sampleSecret) && !text.contains("h.example"))
        }
    }

    @Test("a batch expires five minutes after it was made")
    func expiry() {
        let batch = WebhookBatch.sample(timeMilliseconds: 1000)
        #expect(!batch.hasExpired(at: 300_999) && batch.hasExpired(at: 301_000))
    }
}

/// A `BatchCollector` that the testing macros can change.
private final class Collector {
    private var collector = BatchCollector()
    var dueAt: UInt64? { collector.dueAt }
    @discardableResult
    func add(_ event: [UInt8], now: UInt64) -> [[UInt8]] { collector.add(event, now: now) }
    func take() -> [UInt8]? { collector.take() }
}

@Suite("BatchCollector")
struct BatchCollectorTests {
    private let event = Array("{}".utf8)

    @Test("the twentieth event completes a request")
    func count() {
        let collector = Collector()
        for _ in 0..<19 { #expect(collector.add(event, now: 5).isEmpty) }
        #expect(collector.add(event, now: 6) == [Array(Array(repeating: "{}", count: 20).joined(separator: ",").utf8)])
        #expect(collector.dueAt == nil && collector.take() == nil)
    }

    @Test("the first event waits for 250 ms, whatever comes after it")
    func wait() {
        let collector = Collector()
        #expect(collector.dueAt == nil)
        collector.add(event, now: 1000)
        collector.add(event, now: 9000)
        #expect(collector.dueAt == 1000 + 250 * millisecondNanoseconds)
        #expect(collector.take() == Array("{},{}".utf8) && collector.dueAt == nil)
    }

    @Test("what would exceed the bytes of a request begins the next, and a very large event goes alone")
    func bytes() {
        let collector = Collector()
        let half = [UInt8](repeating: 1, count: WebhookLimits.batchBytesMax / 2)
        let huge = [UInt8](repeating: 2, count: WebhookLimits.batchBytesMax + 1)
        #expect(collector.add(half, now: 0).isEmpty)
        #expect(collector.add(half, now: 1) == [half])
        #expect(collector.dueAt == 1 + WebhookLimits.batchWaitNanoseconds)
        #expect(collector.add(huge, now: 2) == [half, huge])
        #expect(collector.take() == nil)
        #expect(collector.add(huge, now: 3) == [huge])
    }
}
