package import HubCore
package import HubDelivery

/// Ends and attempts of pushes since the start; the outbox's own plain numbers.
package struct OutboxCounts: Sendable {
    package private(set) var ended: [PushState: UInt64] = [:]
    /// From handing a push over to what its gateway said, retries included.
    package private(set) var attempts: [PushProvider: Histogram] = [:]

    mutating func ended(_ push: PushRecord) { ended[push.state, default: 0] += 1 }

    /// - Parameter time: milliseconds since 1970.
    mutating func answered(_ push: PushRecord, _ answer: PushFlow.Answer, time: Int64) {
        guard let attempt = push.attempt, answer.outcome != .skippedUnconfigured else { return }
        let nanoseconds = UInt64(max(0, time - attempt.startedAt)) * 1_000_000
        attempts[answer.attempt.target.provider, default: Histogram()].note(nanoseconds: nanoseconds)
    }
}

/// A copy of the outbox's numbers, for metrics.
package struct OutboxCounters: Sendable {
    /// A provider's pushes that wait for a lane, by environment.
    package struct Lane: Hashable, Sendable {
        package let provider: PushProvider
        package let environment: APNsEnvironment?

        package init(provider: PushProvider, environment: APNsEnvironment?) {
            self.provider = provider
            self.environment = environment
        }
    }

    package var counts = OutboxCounts()
    /// Pushes in memory, those that wait for a lane included; what is being sent is not among them.
    package var queued = 0
    package var parked: [Lane: Int] = [:]
    /// Leased or handed over, and not written down as ended.
    package var inFlight = 0
    /// The store holds more than memory does.
    package var hasOverflowed = false
    /// Since when the push waits that is due for the longest, in milliseconds.
    package var oldestDueMilliseconds: Int64 = 0
}
