internal import HubDelivery

/// Keeps a lane from sending with wrong credentials or configuration: a pure state machine. For outages of the gateway
/// see `LaneBreaker`.
///
/// A stopped lane admits one probe after a while. Each further refusal doubles the wait. Other pushes wait meanwhile,
/// or get a retry outcome if sent without admission, so they are lost only by expiring.
struct LaneGate: Equatable {
    static let holdFirst: UInt64 = 60 * nanosecondsPerSecond
    static let holdMax: UInt64 = 600 * nanosecondsPerSecond

    private(set) var reason: String?
    private var until: UInt64 = 0
    private var hold: UInt64 = 0
    private(set) var isProbing = false

    /// Time until the next probe. Nil: open; zero: the next push is the probe.
    func wait(now: UInt64) -> Duration? {
        reason.map { _ in .nanoseconds(Int64(clamping: until > now ? until - now : 0)) }
    }

    /// Nil: open.
    func stop(now: UInt64) -> LaneStop? { wait(now: now).map { LaneStop(wait: $0, isProbing: isProbing) } }

    /// Nil if a push may go out; otherwise its outcome without sending.
    mutating func refusal(now: UInt64) -> PushOutcome? {
        admit(now: now).map { .retry(after: $0.wait, reason: RetryCause.lane.reason("stopped: \($0.reason)")) }
    }

    /// Nil if a push may go out; otherwise the reason and the wait.
    /// - Parameter now: nanoseconds of the monotonic clock.
    mutating func admit(now: UInt64) -> (reason: String, wait: Duration)? {
        guard let reason else { return nil }
        guard now < until else {
            // This push is the probe; others wait for its result.
            until = now + hold
            isProbing = true
            return nil
        }
        return (reason, .nanoseconds(Int64(clamping: until - now)))
    }

    /// - Returns: true if the lane was open before, so that one report covers all pushes in flight.
    mutating func stop(_ reason: String, now: UInt64) -> Bool {
        let wasOpen = self.reason == nil
        // Only a failed probe extends the stop, not pushes that were in flight at the first refusal.
        guard wasOpen || isProbing else { return false }
        assert(!(wasOpen && isProbing), "a probe of an open lane")
        hold = wasOpen ? Self.holdFirst : min(Self.holdMax, hold * 2)
        isProbing = false
        self.reason = reason
        until = now + hold
        return wasOpen
    }

    /// - Returns: true if this ends a stop. Only a probe does, not pushes that were in flight when the lane stopped.
    mutating func accepted() -> Bool {
        guard reason != nil, isProbing else { return false }
        self = LaneGate()
        return true
    }
}

let nanosecondsPerSecond: UInt64 = 1_000_000_000
