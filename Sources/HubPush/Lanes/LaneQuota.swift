internal import Synchronization

/// The rate of a gateway's quota, shared by all its lanes. Any thread.
final class LaneQuota: Sendable {
    /// Locked inside the lanes' locks; takes no further lock.
    private let rate: Mutex<LaneRate>

    /// - Parameter perMinute: the gateway's quota; nil: none.
    init(perMinute: Int?) { rate = Mutex(LaneRate(perMinute: perMinute)) }

    func withRate<Result: Sendable>(_ body: (inout LaneRate) -> Result) -> Result { rate.withLock { body(&$0) } }
}
