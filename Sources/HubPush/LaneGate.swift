/// Keeps a lane from repeating what its credentials or configuration make hopeless: a pure state machine.
///
/// A stopped lane lets one push through after a while, to see whether somebody has put things right; each further
/// refusal doubles the wait. Pushes that come meanwhile are to be retried, so they are lost only by expiring.
struct LaneGate: Equatable {
    static let holdFirst: UInt64 = 60 * nanosecondsPerSecond
    static let holdMax: UInt64 = 600 * nanosecondsPerSecond

    private(set) var reason: String?
    private var until: UInt64 = 0
    private var hold: UInt64 = 0
    private var isProbing = false

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

    /// True when the lane was stopped before.
    mutating func accepted() -> Bool {
        guard reason != nil else { return false }
        self = LaneGate()
        return true
    }
}

/// Tells one wrong token from a lane that is wrong as a whole (the other environment's host, another app's key), where
/// deleting tokens would lose every device.
struct BadTokenGuard: Equatable {
    /// Answers looked back on.
    static let span = 100
    /// Fewer answers than this prove nothing.
    static let samplesMin = 20
    /// More bad tokens than this share of the answers are not chance.
    static let percentMax = 5

    private var answers: [Bool] = []
    private var oldest = 0
    private var bad = 0

    /// Notes one answer and tells whether a bad token may be believed.
    mutating func note(isBad: Bool) -> Bool {
        if answers.count < Self.span {
            answers.append(isBad)
        } else {
            if answers[oldest] { bad -= 1 }
            answers[oldest] = isBad
            oldest = (oldest + 1) % Self.span
        }
        if isBad { bad += 1 }
        return answers.count < Self.samplesMin || bad * 100 <= Self.percentMax * answers.count
    }
}

let nanosecondsPerSecond: UInt64 = 1_000_000_000
