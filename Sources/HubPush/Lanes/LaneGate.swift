/// Keeps a lane from repeating what its credentials or configuration make hopeless: a pure state machine. Outages of the gateway are
/// `LaneBreaker`'s.
///
/// A stopped lane lets one push through after a while, to see whether somebody has put things right; each further
/// refusal doubles the wait. Pushes wait meanwhile, or are to be retried where nobody asked, so they are lost only by expiring.
struct LaneGate: Equatable {
    static let holdFirst: UInt64 = 60 * nanosecondsPerSecond
    static let holdMax: UInt64 = 600 * nanosecondsPerSecond

    private(set) var reason: String?
    private var until: UInt64 = 0
    private var hold: UInt64 = 0
    private(set) var isProbing = false

    /// How long it lets nothing through: nil: it is open; zero: the next push is the probe.
    func wait(now: UInt64) -> Duration? {
        reason.map { _ in .nanoseconds(Int64(clamping: until > now ? until - now : 0)) }
    }

    /// Nil when a push may go out; otherwise why not and how long it has to wait.
    /// - Parameter now: nanoseconds of the monotonic clock.
    mutating func admit(now: UInt64) -> (reason: String, wait: Duration)? {
        guard let reason else { return nil }
        guard now < until else {
            // This one is the probe; the others wait for its result.
            until = now + hold
            isProbing = true
            return nil
        }
        return (reason, .nanoseconds(Int64(clamping: until - now)))
    }

    /// True when the lane was open before, so that it is reported once and not for every push in flight.
    mutating func stop(_ reason: String, now: UInt64) -> Bool {
        let wasOpen = self.reason == nil
        // Pushes that were in flight at the first refusal add nothing to it; only a failed probe does.
        guard wasOpen || isProbing else { return false }
        hold = wasOpen ? Self.holdFirst : min(Self.holdMax, hold * 2)
        isProbing = false
        self.reason = reason
        until = now + hold
        return wasOpen
    }

    /// True when this ends a stop. Pushes that were in flight when the lane stopped end nothing, only a probe does.
    mutating func accepted() -> Bool {
        guard reason != nil, isProbing else { return false }
        self = LaneGate()
        return true
    }
}

let nanosecondsPerSecond: UInt64 = 1_000_000_000
