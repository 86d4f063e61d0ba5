internal import HubDelivery

/// Keeps a lane from sending with wrong credentials or configuration: a pure state machine. For outages of the gateway
/// see `LaneBreaker`.
///
/// A stopped lane admits one trial after a while. Each further refusal doubles the wait. Other pushes wait meanwhile,
/// or get a retry outcome if sent without admission, so they are lost only by expiring.
struct LaneGate: Equatable {
    static let holdFirst: UInt64 = 60 * nanosecondsPerSecond
    static let holdMax: UInt64 = 600 * nanosecondsPerSecond

    private(set) var reason: String?
    private var until: UInt64 = 0
    private var hold: UInt64 = 0
    private(set) var isOnTrial = false

    /// Time until the next trial. Nil: open; zero: the next push is the trial.
    func wait(now: UInt64) -> Duration? {
        reason.map { _ in .nanoseconds(Int64(clamping: until > now ? until - now : 0)) }
    }

    /// Nil: open.
    func stop(now: UInt64) -> LaneStop? { wait(now: now).map { LaneStop(wait: $0, isOnTrial: isOnTrial) } }

    /// Nil if a push may go out; otherwise its outcome without sending.
    mutating func refusal(now: UInt64) -> PushOutcome? {
        admit(now: now).map { .retry(after: $0.wait, reason: RetryCause.lane.reason("stopped: \($0.reason)")) }
    }

    /// Nil if a push may go out; otherwise the reason and the wait.
    /// - Parameter now: nanoseconds of the monotonic clock.
    mutating func admit(now: UInt64) -> (reason: String, wait: Duration)? {
        guard let reason else { return nil }
        guard now < until else {
            // This push is the trial; others wait for its result.
            until = now + hold
            isOnTrial = true
            return nil
        }
        return (reason, .nanoseconds(Int64(clamping: until - now)))
    }

    /// - Returns: true if the lane was open before, so that one report covers all pushes in flight.
    mutating func stop(_ reason: String, now: UInt64) -> Bool {
        let wasOpen = self.reason == nil
        // Only a failed trial extends the stop, not pushes that were in flight at the first refusal.
        guard wasOpen || isOnTrial else { return false }
        assert(!(wasOpen && isOnTrial), "a trial of an open lane")
        hold = wasOpen ? Self.holdFirst : min(Self.holdMax, hold * 2)
        isOnTrial = false
        self.reason = reason
        until = now + hold
        return wasOpen
    }

    /// - Returns: true if this ends a stop. Only a trial does, not pushes that were in flight when the lane stopped.
    mutating func accepted() -> Bool {
        guard reason != nil, isOnTrial else { return false }
        self = LaneGate()
        return true
    }
}

let nanosecondsPerSecond: UInt64 = 1_000_000_000
