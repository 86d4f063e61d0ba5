internal import HubCore
internal import HubDelivery
internal import Synchronization

/// A `LaneGate` for what several gateways on one lane do not share, such as APNs' topic. Callable from any thread.
final class GateKeeper: Sendable {
    private let time: any TimeSource
    private let gate = Mutex(LaneGate())

    init(time: any TimeSource) { self.time = time }

    /// Nil when a push may go out; otherwise the outcome it gets instead.
    func refusal() -> PushOutcome? {
        let now = time.monotonicNanoseconds
        return gate.withLock { $0.admit(now: now) }.map { stopped in
            .retry(after: stopped.wait, reason: RetryCause.lane.reason("stopped: \(stopped.reason)"))
        }
    }

    /// How long it lets nothing through: nil: it is open; zero: the next push is the probe. With it whether a probe is under way.
    func wait() -> (wait: Duration, isProbing: Bool)? {
        let now = time.monotonicNanoseconds
        return gate.withLock { gate in gate.wait(now: now).map { ($0, gate.isProbing) } }
    }

    var reason: String? { gate.withLock { $0.reason } }

    func stop(_ reason: String) {
        let now = time.monotonicNanoseconds
        _ = gate.withLock { $0.stop(reason, now: now) }
    }

    /// True when it was stopped before.
    func accepted() -> Bool { gate.withLock { $0.accepted() } }
}
