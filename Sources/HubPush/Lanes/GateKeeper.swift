internal import HubCore
internal import HubDelivery
internal import Synchronization

/// A `LaneGate` for properties that gateways on one lane do not share, such as APNs' topic. Any thread.
final class GateKeeper: Sendable {
    private let time: any TimeSource
    private let gate = Mutex(LaneGate())

    init(time: any TimeSource) { self.time = time }

    /// Nil if a push may go out; otherwise its outcome without sending.
    func refusal() -> PushOutcome? {
        let now = time.monotonicNanoseconds
        return gate.withLock { $0.admit(now: now) }.map { stopped in
            .retry(after: stopped.wait, reason: RetryCause.lane.reason("stopped: \(stopped.reason)"))
        }
    }

    /// Time until the next probe, and whether one is in flight. Nil: open; zero: the next push is the probe.
    func wait() -> (wait: Duration, isProbing: Bool)? {
        let now = time.monotonicNanoseconds
        return gate.withLock { gate in gate.wait(now: now).map { ($0, gate.isProbing) } }
    }

    var reason: String? { gate.withLock { $0.reason } }

    func stop(_ reason: String) {
        let now = time.monotonicNanoseconds
        _ = gate.withLock { $0.stop(reason, now: now) }
    }

    /// - Returns: true if it was stopped before.
    func accepted() -> Bool { gate.withLock { $0.accepted() } }
}
