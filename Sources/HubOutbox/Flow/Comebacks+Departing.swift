package import HubCore
package import HubDelivery

/// Departing: a push is checked before its lease, and again when it leaves its lane and libcurl's queue.
extension Comebacks {
    /// After this time a push is checked again whose receipt has come and is being stored, in milliseconds.
    private static let receiptWritten: Int64 = 1_000

    /// The time that a push is kept back for, in milliseconds; nil: it leaves. A push that would be too late afterwards leaves.
    package func wait(of push: PushRecord, at now: Moment) -> Int64? {
        let wait: Int64
        switch ruling(push, now: now.monotonic) {
        case .goes: return nil
        case .waits(let until): wait = until - now.monotonic
        case .stays: wait = Self.receiptWritten
        }
        guard let timing = push.timing, now.wall + wait + Decision.lastCallMilliseconds < timing.expiresAt else { return nil }
        return wait
    }
}
