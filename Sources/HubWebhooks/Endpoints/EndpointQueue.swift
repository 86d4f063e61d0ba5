package import HubDelivery

/// The batches of one endpoint in the order of creation, and the rule which one may be sent when. Pure. Times are nanoseconds of a
/// monotonic clock, except for expiry: receivers compare it with the wall clock.
///
/// One request is in flight at a time, so batches arrive in order. An unreachable endpoint pauses as a whole, because later batches would
/// fail as well. If the endpoint refuses a batch, the cause may be that batch. It is retried while the rest waits, and after
/// `refusalsBeforePassing` refusals the rest may pass it. So a single bad batch cannot delay the queue by five minutes.
package struct EndpointQueue {
    /// One batch in the queue.
    package struct Entry: Sendable {
        /// Identifies the entry within this queue.
        package let number: Int
        /// The signed request.
        package let batch: WebhookBatch
        /// The stored row; nil until the batch is durable, and it is not sent before.
        package fileprivate(set) var row: Int64?
        /// Attempts that failed.
        package fileprivate(set) var failures = 0
        fileprivate var refusals = 0
        fileprivate var notBefore: UInt64 = 0
    }

    private var entries: [Entry] = []
    private var lastNumber = 0
    /// Sum of the bodies' lengths.
    package private(set) var bytes = 0
    /// Number of the entry in flight.
    package private(set) var inFlight: Int?
    private var unreachableInRow = 0
    private var pausedUntil: UInt64 = 0
    private let batchesMax: Int
    private let bytesMax: Int

    /// - Parameters:
    ///   - batchesMax: batches the queue may hold.
    ///   - bytesMax: bytes of their bodies together.
    package init(batchesMax: Int = WebhookLimits.queueBatchesMax, bytesMax: Int = WebhookLimits.queueBytesMax) {
        self.batchesMax = batchesMax
        self.bytesMax = bytesMax
    }

    /// Batches, the one in flight included. O(1).
    package var count: Int { entries.count }
    /// Whether nothing waits and nothing is in flight. O(1).
    package var isEmpty: Bool { entries.isEmpty }

    /// Whether the bytes are those of the entries, which are in the order of their numbers. Walks short queues only.
    private var isConsistent: Bool {
        guard bytes >= 0, inFlight == nil || !entries.isEmpty else { return false }
        if entries.count > 64 { return true }
        return entries.reduce(0) { $0 + $1.batch.body.count } == bytes
            && zip(entries, entries.dropFirst()).allSatisfy { $0.number < $1.number }
            && (inFlight.map { number in entries.contains { $0.number == number && $0.row != nil } } ?? true)
    }

    /// Forgets all batches. Numbers go on.
    /// - Returns: the batch in flight, of which the queue knows nothing any more.
    package mutating func leave() -> (number: Int, row: Int64)? {
        defer { (entries, bytes, inFlight, unreachableInRow, pausedUntil) = ([], 0, nil, 0, 0) }
        guard let inFlight, let row = entries.first(where: { $0.number == inFlight })?.row else { return nil }
        return (inFlight, row)
    }

    /// Adds a batch and returns the dropped ones. The oldest are dropped first: they have been tried the longest and expire soonest, while
    /// the newest describe the current state. The entry in flight stays.
    /// - Parameter row: the stored row, for a batch read from the store.
    package mutating func append(_ batch: WebhookBatch, row: Int64? = nil) -> [Entry] {
        lastNumber += 1
        entries.append(Entry(number: lastNumber, batch: batch, row: row))
        bytes += batch.body.count
        var dropped: [Entry] = []
        while entries.count > batchesMax || bytes > bytesMax,
            let oldest = entries.dropLast().firstIndex(where: { $0.number != inFlight })
        {
            dropped.append(remove(at: oldest))
        }
        assert(isConsistent, "\(entries.count) batches of \(bytes) bytes, \(inFlight ?? 0) in flight")
        return dropped
    }

    /// Entries that are not durable yet, oldest first, at most `limit`.
    package func unstored(limit: Int) -> [Entry] {
        // Unstored entries are the youngest, because entries are stored in order.
        let first = entries.lastIndex { $0.row != nil }.map { $0 + 1 } ?? 0
        assert(entries.count > 64 || entries[..<first].allSatisfy { $0.row != nil }, "a batch before place \(first) is not stored")
        return Array(entries[first...].prefix(limit))
    }

    /// Marks an entry as durable. False if it has left the queue.
    package mutating func stored(_ number: Int, row: Int64) -> Bool {
        guard let index = entries.firstIndex(where: { $0.number == number }) else { return false }
        assert(entries[index].row == nil, "batch \(number) is stored in row \(row) and in another")
        entries[index].row = row
        return true
    }

    /// The next entry to send, in flight until `ended`; nil if none is due.
    package mutating func takeNext(now: UInt64) -> Entry? {
        guard inFlight == nil, pausedUntil <= now else { return nil }
        for entry in entries {
            guard entry.row != nil else { return nil }
            if entry.notBefore <= now {
                assert(isConsistent, "\(entries.count) batches of \(bytes) bytes, none in flight")
                inFlight = entry.number
                return entry
            }
            guard entry.mayBePassed else { return nil }
        }
        return nil
    }

    /// Records the end of an attempt.
    /// - Parameter random: in 0 ..< 1, for the jitter.
    /// - Returns: the entry, which leaves the queue if delivered; nil if `number` is not in flight.
    package mutating func ended(_ number: Int, _ outcome: AttemptOutcome, now: UInt64, random: Double) -> Entry? {
        guard inFlight == number, let index = entries.firstIndex(where: { $0.number == number }) else { return nil }
        inFlight = nil
        switch outcome {
        case .delivered:
            unreachableInRow = 0
            return remove(at: index)
        case .unreachable:
            unreachableInRow += 1
            pausedUntil = now + Self.backoff(failures: unreachableInRow, random: random)
        case .refused:
            unreachableInRow = 0
            entries[index].refusals += 1
            entries[index].notBefore = now + Self.backoff(failures: entries[index].refusals, random: random)
        }
        entries[index].failures += 1
        return entries[index]
    }

    /// Removes expired entries. The one in flight stays until its attempt has ended.
    package mutating func takeExpired(wallMilliseconds: Int64) -> [Entry] {
        var expired: [Entry] = []
        while let index = entries.firstIndex(where: { $0.number != inFlight }),
            entries[index].batch.hasExpired(at: wallMilliseconds)
        {
            expired.append(remove(at: index))
        }
        return expired
    }

    /// When `takeNext` may next return an entry; nil: not before another event.
    package var nextAttempt: UInt64? {
        guard inFlight == nil else { return nil }
        var soonest: UInt64?
        for entry in entries {
            guard entry.row != nil else { break }
            soonest = min(soonest ?? .max, entry.notBefore)
            if !entry.mayBePassed || entry.notBefore <= pausedUntil { break }
        }
        return soonest.map { max($0, pausedUntil) }
    }

    /// Wall clock's milliseconds at which `takeExpired` next returns an entry.
    package var nextExpiry: Int64? {
        entries.first { $0.number != inFlight }.map { $0.batch.timeMilliseconds + WebhookLimits.lifeMilliseconds }
    }

    /// The pause after a failure: half a second to one second after the first, doubling up to half a minute. The random half spreads the
    /// retries of many hubs.
    package static func backoff(failures: Int, random: Double) -> UInt64 {
        assert(failures > 0 && (0..<1).contains(random), "a pause after \(failures) failures, random \(random)")
        // Five doublings exceed the longest pause.
        let full = min(WebhookLimits.backoffMaxNanoseconds, WebhookLimits.backoffNanoseconds << UInt64(min(failures - 1, 5)))
        return full / 2 + UInt64(Double(full / 2) * random)
    }

    private mutating func remove(at index: Int) -> Entry {
        let entry = entries.remove(at: index)
        bytes -= entry.batch.body.count
        assert(entry.number != inFlight && bytes >= 0, "batch \(entry.number) leaves the queue in flight, or \(bytes) bytes are left")
        return entry
    }
}

extension EndpointQueue.Entry {
    fileprivate var mayBePassed: Bool { refusals >= WebhookLimits.refusalsBeforePassing }
}
