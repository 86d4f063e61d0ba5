internal import HubCore
internal import HubDelivery
internal import Synchronization

/// Departing: a push is looked at once more before it is leased, and when it leaves its lane and libcurl's queue.
extension Outbox {
    /// A push that was handed over and may be kept back until it leaves.
    final class Departure: Sendable {
        /// For how many milliseconds it was kept back; 0: it left.
        private let kept = Atomic<Int64>(0)

        /// Nil: it left.
        var keptMilliseconds: Int64? {
            let kept = kept.load(ordering: .acquiring)
            return kept > 0 ? kept : nil
        }

        func keep(_ milliseconds: Int64) { kept.store(milliseconds, ordering: .releasing) }
    }

    /// The trail's word for a push that waits for the receipt of somebody who has just come back.
    static let cameBack = "came back"
    /// When a push is looked at again whose receipt has come and is being written down, in milliseconds.
    private static let receiptWritten: Int64 = 1_000

    /// For how long a push is kept back, in milliseconds; nil: it goes. Callable from any thread.
    nonisolated func wait(of delivery: PushRecord) -> Int64? {
        let monotonic = Int64(time.monotonicNanoseconds / 1_000_000)
        let wait: Int64
        switch comebacks.withLock({ $0.ruling(delivery, now: monotonic) }) {
        case .goes: return nil
        case .waits(let until): wait = until - monotonic
        case .stays: wait = Self.receiptWritten
        }
        // What would come too late otherwise goes.
        guard let timing = delivery.timing, time.wallMilliseconds + wait + Decision.lastCallMilliseconds < timing.expiresAt else {
            return nil
        }
        return wait
    }

    /// Those that go now; the others are in the queue.
    func departing(_ deliveries: [PushRecord]) -> [PushRecord] {
        deliveries.filter { delivery in
            guard let wait = wait(of: delivery) else { return true }
            var delivery = delivery
            delivery.dueAt = now + wait
            queue.insert(delivery)
            return false
        }
    }

    /// A push that was handed over and did not leave: no attempt was made.
    func keptBack(_ delivery: PushRecord, milliseconds: Int64) -> PushRecord {
        var delivery = delivery
        delivery.state = .retry
        delivery.outcome = Self.cameBack
        delivery.dueAt = now + milliseconds
        delivery.attempts -= 1
        delivery.attempt = nil
        if delivery.attempts == 0 { delivery.firstAttemptAt = nil }
        return delivery
    }
}
