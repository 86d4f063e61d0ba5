package import HubDelivery

/// The batches of one endpoint in the order of their making, and which may be sent when. Pure; times in nanoseconds of a clock
/// that never goes back, but for expiry, which is about the wall clock that receivers compare with.
///
/// One request is under way at a time, so that batches arrive in order. An endpoint that cannot be reached is left alone for a
/// while as a whole, since those behind would fare no better. One that answers and refuses a batch may be right about that batch:
/// it is tried again while the others wait, and after `refusalsBeforePassing` attempts they pass it, so that a single bad batch
/// does not delay everything by five minutes.
package struct EndpointQueue {
    package struct Entry: Sendable {
        package let number: Int
        package let batch: WebhookBatch
        /// Nil until it is durable; before that it is not sent.
        package fileprivate(set) var row: Int64?
        /// Attempts that have ended without success.
        package fileprivate(set) var failures = 0
        fileprivate var refusals = 0
        fileprivate var notBefore: UInt64 = 0
    }

    private var entries: [Entry] = []
    private var lastNumber = 0
    /// Of the bodies.
    package private(set) var bytes = 0
    /// The number of the entry that is being sent.
    package private(set) var inFlight: Int?
    private var unreachableInRow = 0
    private var pausedUntil: UInt64 = 0
    private let batchesMax: Int
    private let bytesMax: Int

    package init(batchesMax: Int = WebhookLimits.queueBatchesMax, bytesMax: Int = WebhookLimits.queueBytesMax) {
        self.batchesMax = batchesMax
        self.bytesMax = bytesMax
    }

    package var count: Int { entries.count }
    package var isEmpty: Bool { entries.isEmpty }

    /// Adds a batch and returns those that have to go for it. The oldest go first: they have been tried the longest and expire
    /// the soonest, and what is told last says how things are. The one that is being sent stays.
    /// - Parameter row: set for a batch that comes from the store.
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
        return dropped
    }

    /// Entries that are not durable yet, oldest first, at most `limit`.
    package func unstored(limit: Int) -> [Entry] {
        // They are the youngest: whatever is stored was stored in order.
        let first = entries.lastIndex { $0.row != nil }.map { $0 + 1 } ?? 0
        return Array(entries[first...].prefix(limit))
    }

    /// Notes that an entry is durable; false when it has left the queue meanwhile.
    package mutating func stored(_ number: Int, row: Int64) -> Bool {
        guard let index = entries.firstIndex(where: { $0.number == number }) else { return false }
        entries[index].row = row
        return true
    }

    /// The entry to send now, which counts as being sent until `ended`; nil when it is not the time for any.
    package mutating func takeNext(now: UInt64) -> Entry? {
        guard inFlight == nil, pausedUntil <= now else { return nil }
        for entry in entries {
            guard entry.row != nil else { return nil }
            if entry.notBefore <= now {
                inFlight = entry.number
                return entry
            }
            guard entry.mayBePassed else { return nil }
        }
        return nil
    }

    /// Notes how an attempt ended.
    /// - Parameter random: from 0 up to 1, for the jitter.
    /// - Returns: the entry, which has left the queue when it was delivered; nil for a number that is not being sent.
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

    /// Takes out what is too old. What is being sent is left until its attempt has ended.
    package mutating func takeExpired(wallMilliseconds: Int64) -> [Entry] {
        var expired: [Entry] = []
        while let index = entries.firstIndex(where: { $0.number != inFlight }),
            entries[index].batch.hasExpired(at: wallMilliseconds)
        {
            expired.append(remove(at: index))
        }
        return expired
    }

    /// When `takeNext` can have something next; nil: not before something else happens.
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

    /// The wall clock's milliseconds at which `takeExpired` has something next.
    package var nextExpiry: Int64? {
        entries.first { $0.number != inFlight }.map { $0.batch.timeMilliseconds + WebhookLimits.lifeMilliseconds }
    }

    /// After the first failure half a second to one second, doubling up to half a minute. The drawn half keeps the batches of
    /// many hubs from coming back together.
    package static func backoff(failures: Int, random: Double) -> UInt64 {
        // Five doublings are past the longest wait.
        let full = min(WebhookLimits.backoffMaxNanoseconds, WebhookLimits.backoffNanoseconds << UInt64(min(failures - 1, 5)))
        return full / 2 + UInt64(Double(full / 2) * random)
    }

    private mutating func remove(at index: Int) -> Entry {
        let entry = entries.remove(at: index)
        bytes -= entry.batch.body.count
        return entry
    }
}

extension EndpointQueue.Entry {
    fileprivate var mayBePassed: Bool { refusals >= WebhookLimits.refusalsBeforePassing }
}
