internal import HubCore
internal import HubDelivery

/// What has become of pushes since the start; the outbox's own plain numbers.
struct OutboxCounts: Sendable {
    private(set) var ended: [PushState: UInt64] = [:]
    /// From handing a push over to what its gateway said, retries included.
    private(set) var attempts: [PushProvider: Histogram] = [:]

    mutating func ended(_ delivery: PushRecord) { ended[delivery.state, default: 0] += 1 }

    /// - Parameter now: milliseconds since 1970.
    mutating func answered(_ delivery: PushRecord, _ answer: Outbox.Answer, now: Int64) {
        guard let attempt = delivery.attempt, answer.outcome != .skippedUnconfigured else { return }
        attempts[answer.target.provider, default: Histogram()].note(nanoseconds: UInt64(max(0, now - attempt.startedAt)) * 1_000_000)
    }
}

/// A copy of the outbox's numbers, for metrics.
struct OutboxCounters: Sendable {
    /// A provider's pushes that wait for a lane, by environment.
    struct Lane: Hashable {
        let provider: PushProvider
        let environment: APNsEnvironment?
    }

    var counts = OutboxCounts()
    /// Pushes in memory, those that wait for a lane included; what is being sent is not among them.
    var queued = 0
    var parked: [Lane: Int] = [:]
    /// Leased or handed over, and not written down as ended.
    var inFlight = 0
    /// The store holds more than memory does.
    var hasOverflowed = false
    /// Since when the push waits that is due for the longest, in milliseconds.
    var oldestDueMilliseconds: Int64 = 0
}

extension Outbox {
    /// Costs as much as what waits, so that counting costs nothing while pushes are sent.
    var figures: OutboxCounters {
        var figures = OutboxCounters(counts: counts, queued: queue.count, inFlight: inFlight, hasOverflowed: hasOverflowed)
        for (route, count) in queue.parkedCounts() {
            let lane = OutboxCounters.Lane(provider: route.provider, environment: route.provider == .apns ? route.environment : nil)
            figures.parked[lane, default: 0] += count
        }
        figures.oldestDueMilliseconds = queue.oldestDue.map { max(0, now - $0) } ?? 0
        return figures
    }
}
