internal import Dispatch
internal import HubCore
internal import Synchronization

/// The stream of one Redis server: every message of every node, read by all nodes in one order, each exactly once. Any thread.
///
/// A message whose answer was lost is appended again under its number. One that cannot be appended in time fails, and is given up. One that
/// is kept waits for as long as it takes: the others go by it.
package final class EventStream: Sendable {
    /// Time for a message to be appended. Later it fails.
    package static let appendMax: Duration = .milliseconds(1_500)
    /// Milliseconds before the start from which announcements are read: webhooks wait three seconds for a member's return, and their owner
    /// may die meanwhile.
    static let earlierMilliseconds: UInt64 = 10_000
    /// Messages, and bytes, that one call appends.
    static let batchMax = 512
    static let batchBytes = 1 << 20
    /// Bytes of a message.
    package static let messageBytesMax = 1 << 20

    private struct State {
        var sent = SentEntries()
        /// Callers that wait, by the number of their message. Without a deadline, the message is kept.
        var waiting: [UInt64: (deadline: ContinuousClock.Instant?, done: @Sendable (Result<Void, RedisFailure>) -> Void)] = [:]
        var isAppending = false
        /// Epoch that messages are appended in. An answer of an earlier one says nothing about the present memory.
        var appendEpoch: String?
        /// Epoch that messages are read in.
        var readEpoch: String?
        var failure: RedisFailure?
        var isClosed = false
        /// Cuts the connection that reads.
        var cut: (@Sendable () -> Void)?
        var lastReadAt: ContinuousClock.Instant?
        var probe = StreamProbe()
        var figures = StreamFigures()
    }

    /// Distinguishes this run of the node from all others.
    package let node: UInt64
    private let locator: RedisLocator
    private let prefix: String
    private let database: String
    private let writer: RedisLink<NodeGreeting>
    private let state = Mutex(State())
    private let readQueue = DispatchQueue(label: "tandem.redis.read")
    private let take: @Sendable (_ news: [NodeNews], _ position: StreamID) -> Void
    private let overflowed: @Sendable () -> Void
    private let started = ContinuousClock.now

    /// - Parameters:
    ///   - node: unique among all runs of all nodes.
    ///   - overflowed: too much is kept, and a message is lost that the others go by.
    ///   - take: gets what was read, in order, with the place up to which it goes, on the stream's own thread.
    init(
        _ locator: RedisLocator, prefix: String, database: String, node: UInt64, writer: RedisLink<NodeGreeting>,
        overflowed: @escaping @Sendable () -> Void, take: @escaping @Sendable (_ news: [NodeNews], _ position: StreamID) -> Void
    ) {
        self.locator = locator
        self.prefix = prefix
        self.database = database
        self.node = node
        self.writer = writer
        self.overflowed = overflowed
        self.take = take
    }

    /// Epoch of the memory that is read; nil before the start.
    var epoch: String? { state.withLock { $0.readEpoch } }

    /// Counters, for metrics.
    package var figures: StreamFigures {
        state.withLock { state in
            var figures = state.figures
            figures.kept = state.sent.count
            figures.sinceRead = state.lastReadAt.map { ContinuousClock.now - $0 }
            figures.probe = state.probe.last?.took
            figures.sinceProbe = state.probe.last.map { ContinuousClock.now - $0.at }
            return figures
        }
    }

    /// Begins to read from the present end on. Everything appended after the return is read.
    /// - Throws: why Redis cannot be the backplane, or does not answer.
    package func start() async throws(RedisFailure) {
        let first = Guarded<CheckedContinuation<Result<Void, RedisFailure>, Never>?>(nil)
        let result = await withCheckedContinuation { continuation in
            first.withLock { $0 = continuation }
            readQueue.async {
                self.read { result in
                    let waiter = first.withLock { waiter in
                        defer { waiter = nil }
                        return waiter
                    }
                    waiter?.resume(returning: result)
                }
            }
        }
        try result.get()
    }

    /// Appends a message.
    /// - Parameters:
    ///   - isKept: the message waits for as long as it takes. If there is no room for it, this run of the node is over.
    ///   - done: called once, on any thread. Success: all nodes will read the message. After a failure they may, or may not.
    package func send(_ payload: [UInt8], isKept: Bool = false, _ done: @escaping @Sendable (Result<Void, RedisFailure>) -> Void) {
        precondition(!payload.isEmpty && payload.count <= Self.messageBytesMax, "a message of \(payload.count) bytes")
        let (refusal, overflows) = state.withLock { state -> (RedisFailure?, Bool) in
            guard !state.isClosed else { return (.lost("the hub stops"), false) }
            guard let number = state.sent.append(payload, now: nanoseconds(.now), isPassing: !isKept) else {
                return (.lost("too much waits for it"), isKept)
            }
            state.waiting[number] = (isKept ? nil : .now + Self.appendMax, done)
            return (nil, false)
        }
        if overflows { overflowed() }
        if let refusal { return done(.failure(refusal)) }
        appendNext()
    }

    /// Fails what waited too long, tries again what was lost, forgets what is certain, and sends a probe when one is due. Call it every
    /// 250 ms.
    package func tick() {
        let now = ContinuousClock.now
        let (late, failure, isBehind, isProbeDue) = state.withLock { state in
            state.sent.drop(now: nanoseconds(now))
            let late = state.waiting.filter { $0.value.deadline.map { $0 <= now } ?? false }
            for number in late.keys {
                state.waiting[number] = nil
                state.sent.giveUp(number)
            }
            state.figures.failed += UInt64(late.count)
            let isBehind = state.readEpoch != nil && state.appendEpoch != state.readEpoch
            return (late, state.failure ?? .lost("it answers nothing in time"), isBehind, state.probe.isDue(at: now))
        }
        for entry in late.sorted(by: { $0.key < $1.key }) { entry.value.done(.failure(failure)) }
        if isProbeDue { send(StreamProbe.payload) { _ in } }
        appendNext(isForced: isBehind)
    }

    /// Ends the connection that reads. Messages that wait fail.
    package func close() async {
        let (waiting, cut) = state.withLock { state in
            state.isClosed = true
            defer { state.waiting = [:] }
            return (state.waiting, state.cut)
        }
        cut?()
        for entry in waiting.sorted(by: { $0.key < $1.key }) { entry.value.done(.failure(.lost("the hub stops"))) }
        await withCheckedContinuation { continuation in readQueue.async { continuation.resume() } }
    }

    // MARK: Appending

    /// - Parameter isForced: also when nothing waits: the epoch may be a new one, in which all that is kept is appended again.
    private func appendNext(isForced: Bool = false) {
        let isBeginning = state.withLock { state in
            guard !state.isAppending, !state.isClosed, isForced || state.sent.hasUnanswered else { return false }
            state.isAppending = true
            return true
        }
        guard isBeginning else { return }
        let batch = Guarded<(epoch: String, numbers: ClosedRange<UInt64>?)>(("", nil))
        writer.send { [self] greeting in
            let entries = take(in: greeting.keys.epoch)
            guard let first = entries.first, let last = entries.last else { return [] }
            batch.withLock { $0 = (greeting.keys.epoch, first.number...last.number) }
            let payloads = entries.map { StreamEntry.message(origin: node, number: $0.number, $0.payload) }
            return [
                ScaleOutScripts.append.call(
                    keys: [greeting.keys.epochKey, greeting.keys.nodes, greeting.keys.numbers, greeting.keys.events],
                    greeting.credentials + [Array(String(first.number).utf8)] + payloads)
            ]
        } _: { [weak self] result in
            let (epoch, numbers) = batch.withLock { $0 }
            self?.appended(numbers, epoch, result.flatMap { $0.isEmpty ? .success(.null) : Self.outcome($0[0]) })
        }
    }

    /// The next entries for a link that was greeted in this epoch: all that is kept, where it is a new one.
    private func take(in epoch: String) -> [SentEntries.Entry] {
        state.withLock { state in
            if state.appendEpoch != epoch {
                if state.appendEpoch != nil { state.sent.epochChanged() }
                state.appendEpoch = epoch
            }
            return state.sent.unanswered(most: Self.batchMax, bytes: Self.batchBytes)
        }
    }

    private static func outcome(_ reply: RedisReply) -> Result<RedisReply, RedisFailure> {
        Result { () throws(RedisFailure) in try reply.value() }
    }

    private func appended(_ numbers: ClosedRange<UInt64>?, _ epoch: String, _ result: Result<RedisReply, RedisFailure>) {
        let done = state.withLock { state -> [@Sendable (Result<Void, RedisFailure>) -> Void] in
            state.isAppending = false
            switch result {
            case .failure(let failure):
                state.failure = failure
                state.figures.lostReplies += 1
                return []
            case .success:
                state.failure = nil
                guard let numbers, state.appendEpoch == epoch else { return [] }
                state.sent.answered(through: numbers.upperBound)
                state.figures.appended += UInt64(numbers.count)
                return numbers.compactMap { state.waiting.removeValue(forKey: $0)?.done }
            }
        }
        for taker in done { taker(.success(())) }
        // A failed batch waits for the next tick: it would only fail again.
        if case .success = result { appendNext() }
    }

    // MARK: Reading

    private struct Place {
        var keys: ScaleOutKeys
        var events: StreamID
        var own = StreamID.zero
        /// The stream's end at the start: what lies before it was said to others.
        var start = StreamID.zero
    }

    /// Reads until the stream is closed.
    /// - Parameter first: gets the result of every try to connect.
    private func read(_ first: (Result<Void, RedisFailure>) -> Void) {
        var (place, received, trim) = (Place?.none, ReceivedNumbers(), TrimPoint())
        var trimAt = ContinuousClock.now
        while !state.withLock({ $0.isClosed }) {
            do throws(RedisFailure) {
                let deadline = ContinuousClock.now + RedisLinkLimits.callMax
                let (host, address) = try locator.locate(deadline)
                let connection = try RedisConnection(host, address, deadline: deadline)
                state.withLock { $0.cut = connection.cut }
                let now = try begin(connection, place, deadline)
                if now.isNewEpoch {
                    trim.restart()
                    take([.newEpoch(now.place.keys.epoch)], .zero)
                }
                var position = now.place
                place = position
                state.withLock { $0.readEpoch = position.keys.epoch }
                if now.isNewEpoch { appendNext(isForced: true) }
                first(.success(()))
                while !state.withLock({ $0.isClosed }) {
                    try readOnce(connection, &position, &received, &trim)
                    place = position
                    if ContinuousClock.now >= trimAt, let minimum = trim.minimum {
                        trimAt = .now + .seconds(5)
                        _ = try connection.run(
                            [RedisCommand("XTRIM", texts: [position.keys.events, "MINID", "~", "\(minimum)"])],
                            deadline: .now + RedisLinkLimits.callMax)[0].value()
                    }
                }
            } catch {
                state.withLock { state in
                    state.failure = error
                    state.cut = nil
                }
                first(.failure(error))
                if !state.withLock({ $0.isClosed }) { pause() }
            }
        }
    }

    private func pause() {
        let (seconds, attoseconds) = RedisLinkLimits.retryEvery.components
        _ = DispatchSemaphore(value: 0).wait(timeout: .now() + Double(seconds) + Double(attoseconds) / 1e18)
    }

    /// Where a connection begins to read.
    private func begin(
        _ connection: RedisConnection, _ known: Place?, _ deadline: ContinuousClock.Instant
    ) throws(RedisFailure) -> (place: Place, isNewEpoch: Bool) {
        let greeting = try NodeGreeting.greet(
            RedisGreeter(connection, deadline), prefix: prefix, database: database, node: node, writes: false)
        if let known, known.keys == greeting.keys { return (known, false) }
        if known != nil { return (Place(keys: greeting.keys, events: .zero), true) }
        let reply = try connection.run(
            [RedisCommand("XREVRANGE", texts: [greeting.keys.events, "+", "-", "COUNT", "1"])], deadline: deadline)[0].value()
        let last = reply.array?.first?.array?.first?.text.flatMap(StreamID.init) ?? .zero
        let since = StreamID(milliseconds: last.milliseconds - min(last.milliseconds, Self.earlierMilliseconds))
        return (Place(keys: greeting.keys, events: since, start: last), false)
    }

    private func readOnce(
        _ connection: RedisConnection, _ place: inout Place, _ received: inout ReceivedNumbers, _ trim: inout TrimPoint
    ) throws(RedisFailure) {
        let names = [place.keys.events, place.keys.to(node)]
        // The epoch travels along: a memory that was wiped leaves a stream that stays empty, and says nothing. It stands behind what may
        // block, so that both answers come at once, and wake this thread once.
        let replies = try connection.run(
            [
                RedisCommand(
                    "XREAD COUNT 1000 BLOCK 1000 STREAMS", texts: names + ["\(place.events)", "\(place.own)"]),
                RedisCommand("GET", texts: [place.keys.epochKey]),
            ], deadline: .now + .seconds(2))
        guard try replies[1].value().text == place.keys.epoch else { throw .lost("its memory was lost") }
        var news: [NodeNews] = []
        let (now, before) = (ContinuousClock.now, place.events)
        for (name, entries) in try StreamEntry.read(try replies[0].value()) {
            guard let last = entries.last else { continue }
            if name == names[0] {
                place.events = last.id
                for entry in entries { trim.read(entry.id, bytes: entry.byteCount + SentEntries.entryBytes) }
            } else {
                place.own = last.id
            }
            for entry in entries {
                if name == names[0], entry.id <= place.start {
                    if let announcement = entry.announcement { news.append(.earlier(announcement)) }
                } else {
                    add(entry, in: place.keys.epoch, to: &news, &received, now)
                }
            }
        }
        state.withLock { $0.lastReadAt = now }
        // A newcomer may wait for the place of an entry that is no news.
        if !news.isEmpty || place.events != before { take(news, place.events) }
    }

    private func add(
        _ entry: StreamEntry, in epoch: String, to news: inout [NodeNews], _ received: inout ReceivedNumbers,
        _ now: ContinuousClock.Instant
    ) {
        guard let (origin, number, payload) = entry.message else {
            if let announcement = entry.announcement { return news.append(.announcement(announcement)) }
            return state.withLock { $0.figures.unknown += 1 }
        }
        if origin == node {
            state.withLock { state in
                if state.appendEpoch == epoch, let took = state.sent.readBack(number, now: nanoseconds(now)) {
                    state.probe.readBack(at: now, took: .nanoseconds(Int64(clamping: took)))
                }
            }
        }
        switch received.take(number, of: origin) {
        case .known: return state.withLock { $0.figures.doubles += 1 }
        case .gap(let missing):
            state.withLock { $0.figures.gaps += 1 }
            news.append(.gap(origin: origin, missing: missing))
        case .new: break
        }
        state.withLock { $0.figures.read += 1 }
        // An empty one was given up by its sender.
        if payload.isEmpty || StreamProbe.isProbe(payload) { return }
        news.append(.message(origin: origin, at: entry.id, Array(payload)))
    }

    private func nanoseconds(_ instant: ContinuousClock.Instant) -> UInt64 {
        let (seconds, attoseconds) = (instant - started).components
        return UInt64(max(0, seconds)) * 1_000_000_000 + UInt64(max(0, attoseconds)) / 1_000_000_000
    }
}

/// Counters of one stream since the start.
package struct StreamFigures: Sendable, Equatable {
    /// Messages of this node that Redis has.
    package var appended: UInt64 = 0
    /// Messages of this node that failed.
    package var failed: UInt64 = 0
    /// Calls without an answer.
    package var lostReplies: UInt64 = 0
    /// Messages read, this node's own included.
    package var read: UInt64 = 0
    /// Messages that came twice, and were dropped.
    package var doubles: UInt64 = 0
    /// Places where messages of a node were missing.
    package var gaps: UInt64 = 0
    /// Entries of a kind that this version does not know.
    package var unknown: UInt64 = 0
    /// Messages of this node that are kept, should Redis lose them.
    package var kept = 0
    /// Time since the last answer to a read; nil: none yet.
    package var sinceRead: Duration?
    /// Time that the node's last message took through Redis back to it, and time since then; nil: none has come back yet.
    package var probe: Duration?
    package var sinceProbe: Duration?

    /// All zero.
    package init() {}
}
