import HubDelivery
import HubHTTPClient
import HubTesting
import HubWebhooks
import Testing

private let unreachable = AttemptOutcome.unreachable(reason: "x")
private let refused = AttemptOutcome.refused(status: 400)

/// An `EndpointQueue` that the testing macros can change.
private final class Queue {
    private var queue: EndpointQueue

    init(_ queue: EndpointQueue = EndpointQueue()) { self.queue = queue }

    var count: Int { queue.count }
    var bytes: Int { queue.bytes }
    var inFlight: Int? { queue.inFlight }
    var nextAttempt: UInt64? { queue.nextAttempt }
    var nextExpiry: Int64? { queue.nextExpiry }

    func append(_ batch: WebhookBatch, row: Int64? = nil) -> [EndpointQueue.Entry] { queue.append(batch, row: row) }
    func unstored(limit: Int) -> [EndpointQueue.Entry] { queue.unstored(limit: limit) }
    func stored(_ number: Int, row: Int64) -> Bool { queue.stored(number, row: row) }
    func takeNext(now: UInt64) -> EndpointQueue.Entry? { queue.takeNext(now: now) }
    func takeExpired(wallMilliseconds: Int64) -> [EndpointQueue.Entry] { queue.takeExpired(wallMilliseconds: wallMilliseconds) }

    /// Without jitter.
    @discardableResult
    func ended(_ number: Int, _ outcome: AttemptOutcome, now: UInt64) -> EndpointQueue.Entry? {
        queue.ended(number, outcome, now: now, random: 0)
    }
}

@Suite("EndpointQueue")
struct EndpointQueueTests {
    /// A queue with durable batches whose bodies are these texts.
    private func queue(_ texts: String..., timeMilliseconds: Int64 = ManualClock.start) -> Queue {
        let queue = Queue()
        for (index, text) in texts.enumerated() {
            _ = queue.append(.sample(text, timeMilliseconds: timeMilliseconds), row: Int64(index + 1))
        }
        return queue
    }

    private func text(_ entry: EndpointQueue.Entry?) -> String? { entry.map { String(decoding: $0.batch.body, as: UTF8.self) } }

    @Test("one request is under way, in order, and a delivered batch leaves")
    func order() throws {
        let queue = queue("a", "b")
        let first = try #require(queue.takeNext(now: 0))
        #expect(text(first) == "a" && queue.inFlight == first.number)
        #expect(queue.takeNext(now: 0) == nil && queue.nextAttempt == nil)
        #expect(queue.ended(first.number, .delivered, now: 1)?.row == 1)
        #expect(queue.ended(first.number, .delivered, now: 1) == nil)
        #expect(text(queue.takeNext(now: 1)) == "b" && queue.count == 1 && queue.bytes == 1)
    }

    @Test("nothing is sent before it is durable")
    func durability() throws {
        let queue = Queue()
        _ = queue.append(.sample("a"))
        _ = queue.append(.sample("b"))
        #expect(queue.takeNext(now: 0) == nil && queue.nextAttempt == nil)
        let unstored = queue.unstored(limit: 10)
        #expect(unstored.map { text($0) } == ["a", "b"] && queue.unstored(limit: 1).count == 1)
        let first = try #require(unstored.first)
        #expect(queue.stored(first.number, row: 7))
        #expect(queue.unstored(limit: 10).map { text($0) } == ["b"])
        #expect(queue.nextAttempt == 0)
        let sent = try #require(queue.takeNext(now: 0))
        queue.ended(sent.number, .delivered, now: 0)
        #expect(queue.takeNext(now: 0) == nil)
        #expect(!queue.stored(first.number, row: 7))
    }

    @Test("C27: waits double from half a second to half a minute, half of each drawn")
    func backoff() {
        let seconds = (1...9).map { Double(EndpointQueue.backoff(failures: $0, random: 0)) / 1e9 }
        #expect(seconds == [0.5, 1, 2, 4, 8, 15, 15, 15, 15])
        #expect(EndpointQueue.backoff(failures: 1, random: 0.5) == 750 * millisecondNanoseconds)
        #expect(EndpointQueue.backoff(failures: 1000, random: 0.999) < 30 * secondNanoseconds)
    }

    @Test("an endpoint that cannot be reached is left alone as a whole, and the order is kept")
    func unreachableEndpoint() throws {
        let queue = queue("a", "b")
        var now: UInt64 = 0
        for failures in 1...10 {
            let entry = try #require(queue.takeNext(now: now))
            #expect(text(entry) == "a")
            #expect(queue.ended(entry.number, unreachable, now: now)?.failures == failures)
            let wait = EndpointQueue.backoff(failures: failures, random: 0)
            #expect(queue.nextAttempt == now + wait)
            #expect(queue.takeNext(now: now + wait - 1) == nil)
            now += wait
        }
        for expected in ["a", "b"] {
            let entry = try #require(queue.takeNext(now: now))
            #expect(text(entry) == expected)
            queue.ended(entry.number, .delivered, now: now)
        }
        // The next outage begins with a short wait again.
        _ = queue.append(.sample("c"), row: 3)
        let third = try #require(queue.takeNext(now: now))
        queue.ended(third.number, unreachable, now: now)
        #expect(queue.nextAttempt == now + secondNanoseconds / 2)
    }

    @Test("a batch that is refused holds up the others for four attempts, then they pass it")
    func refusal() throws {
        let queue = queue("bad", "b", "c")
        var now: UInt64 = 0
        for attempt in 1...4 {
            let entry = try #require(queue.takeNext(now: now))
            #expect(text(entry) == "bad")
            queue.ended(entry.number, refused, now: now)
            if attempt < 4 {
                #expect(queue.takeNext(now: now) == nil)
                now = try #require(queue.nextAttempt)
            }
        }
        for expected in ["b", "c"] {
            #expect(queue.nextAttempt == 0)
            let entry = try #require(queue.takeNext(now: now))
            #expect(text(entry) == expected)
            queue.ended(entry.number, .delivered, now: now)
        }
        #expect(queue.takeNext(now: now) == nil)
        let again = try #require(queue.nextAttempt)
        #expect(again == now + EndpointQueue.backoff(failures: 4, random: 0))
        #expect(text(queue.takeNext(now: again)) == "bad")
    }

    @Test("what is too old leaves, but not while its attempt is under way")
    func expiry() throws {
        let queue = Queue()
        _ = queue.append(.sample("a", timeMilliseconds: 0), row: 1)
        _ = queue.append(.sample("b", timeMilliseconds: 10), row: 2)
        let entry = try #require(queue.takeNext(now: 0))
        #expect(queue.nextExpiry == 300_010)
        #expect(queue.takeExpired(wallMilliseconds: 300_009).isEmpty)
        #expect(queue.takeExpired(wallMilliseconds: 300_010).map { text($0) } == ["b"])
        #expect(queue.nextExpiry == nil)
        queue.ended(entry.number, unreachable, now: 0)
        #expect(queue.takeExpired(wallMilliseconds: 300_010).map(\.row) == [1])
        #expect(queue.count == 0 && queue.bytes == 0 && queue.nextAttempt == nil)
    }

    @Test("a full queue drops its oldest, except what is being sent")
    func bounds() throws {
        let queue = Queue(EndpointQueue(batchesMax: 2, bytesMax: 10))
        #expect(queue.append(.sample("a"), row: 1).isEmpty)
        #expect(queue.append(.sample("b"), row: 2).isEmpty)
        let sent = try #require(queue.takeNext(now: 0))
        #expect(queue.append(.sample("c"), row: 3).map(\.row) == [2])
        #expect(queue.append(.sample("12345678901")).map(\.row) == [3])
        #expect(queue.count == 2 && queue.bytes == 12)
        queue.ended(sent.number, unreachable, now: 0)
        // The youngest stays even when it alone is too large: it has not had its chance.
        #expect(queue.append(.sample("another one")).count == 2)
        #expect(queue.count == 1 && queue.bytes == 11)
    }

    @Test("whatever happens, the bounds hold, one request is under way, and the next attempt's time is right")
    func random() {
        for seed in 0..<200 {
            var random = SeededRandom(state: UInt64(seed))
            let queue = Queue(EndpointQueue(batchesMax: 6, bytesMax: 40))
            var (now, wall, row) = (UInt64(0), Int64(0), Int64(0))
            for _ in 0..<300 {
                switch Int.random(in: 0..<7, using: &random) {
                case 0, 1:
                    let text = String(repeating: "x", count: Int.random(in: 1...10, using: &random))
                    _ = queue.append(.sample(text, timeMilliseconds: wall))
                case 2, 3:
                    for entry in queue.unstored(limit: Int.random(in: 1...3, using: &random)) {
                        row += 1
                        #expect(queue.stored(entry.number, row: row))
                    }
                case 4:
                    let step = Int64.random(in: 0...60_000, using: &random)
                    wall += step
                    now += UInt64(step) * millisecondNanoseconds
                    #expect(queue.takeExpired(wallMilliseconds: wall).allSatisfy { $0.batch.hasExpired(at: wall) })
                default:
                    if let number = queue.inFlight {
                        queue.ended(number, [.delivered, unreachable, refused, refused][Int.random(in: 0..<4, using: &random)], now: now)
                    } else if let next = queue.nextAttempt {
                        #expect(next <= now || queue.takeNext(now: next - 1) == nil, "seed \(seed)")
                        now = max(now, next)
                        #expect(queue.takeNext(now: now)?.number == queue.inFlight && queue.inFlight != nil, "seed \(seed)")
                    } else {
                        #expect(queue.takeNext(now: now + 1000 * secondNanoseconds) == nil, "seed \(seed)")
                    }
                }
                #expect(queue.count <= 6 && (queue.bytes <= 40 || queue.count <= 2), "seed \(seed)")
            }
        }
    }

    @Test(
        "answers are success, the endpoint's trouble, or the batch's",
        arguments: [
            (200, AttemptOutcome.delivered), (204, .delivered), (299, .delivered), (301, .refused(status: 301)),
            (302, .refused(status: 302)), (400, .refused(status: 400)), (404, .refused(status: 404)), (500, .refused(status: 500)),
            (429, .unreachable(reason: "http 429")), (502, .unreachable(reason: "http 502")), (503, .unreachable(reason: "http 503")),
            (504, .unreachable(reason: "http 504")),
        ])
    func outcomes(status: Int, outcome: AttemptOutcome) {
        #expect(AttemptOutcome(.success(HTTPAnswer(status: status, version: .http1))) == outcome)
    }

    @Test("no answer is the endpoint's trouble")
    func noAnswer() {
        let error = HTTPClientError(reason: .transport(.operationTimedOut), delivery: .outcomeUnknown, detail: "late")
        #expect(AttemptOutcome(.failure(error)) == .unreachable(reason: "late"))
    }
}
