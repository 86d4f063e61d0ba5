internal import Synchronization

/// The rate that a gateway's quota allows, for all lanes that send on that quota together. For any thread.
final class LaneQuota: Sendable {
    /// Taken inside the locks of lanes, and takes none itself.
    private let rate: Mutex<LaneRate>

    /// - Parameter perMinute: the gateway's quota; nil: it has none.
    init(perMinute: Int?) { rate = Mutex(LaneRate(perMinute: perMinute)) }

    func withRate<Result: Sendable>(_ body: (inout LaneRate) -> Result) -> Result { rate.withLock { body(&$0) } }
}
