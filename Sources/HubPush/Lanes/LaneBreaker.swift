/// Keeps a lane from sending into an outage: a pure state machine alongside `LaneGate`, which handles wrong credentials.
///
/// A closed breaker counts consecutive failures. An open one admits one trial after each hold; an answer to the trial closes it,
/// and the lane then ramps up. Waiting pushes count no attempt.
struct LaneBreaker: Equatable {
    /// Consecutive pushes without an answer, or with a 5xx, that make an outage.
    static let failuresMax = 10
    static let holdFirst: UInt64 = 5 * nanosecondsPerSecond
    static let holdMax: UInt64 = 120 * nanosecondsPerSecond
    /// A new outage within this time continues the hold of the last one.
    static let relapse: UInt64 = 60 * nanosecondsPerSecond

    private(set) var isOpen = false
    private var failures = 0
    private var until: UInt64 = 0
    private var hold: UInt64 = 0
    private(set) var isOnTrial = false
    private var closedAt: UInt64?

    /// Nil: closed. Zero: a trial is due.
    /// - Parameter now: nanoseconds of the monotonic clock, like all times here.
    func wait(now: UInt64) -> Duration? {
        guard isOpen else { return nil }
        return .nanoseconds(Int64(clamping: until > now ? until - now : 0))
    }

    /// Nil: closed.
    func stop(now: UInt64) -> LaneStop? { wait(now: now).map { LaneStop(wait: $0, isOnTrial: isOnTrial) } }

    /// Notes that a trial is sent. Other pushes wait for its result, or for the next hold if there is none.
    mutating func beginTrial(now: UInt64) {
        assert(isOpen, "a trial of a lane without an outage")
        isOnTrial = true
        until = now + hold
    }

    /// Notes a push without an answer, or with a 5xx.
    /// - Returns: whether the breaker opens.
    mutating func failed(now: UInt64) -> Bool {
        if isOpen {
            // Only a failed trial extends the hold, not pushes that were in flight when the breaker opened.
            if isOnTrial {
                hold = min(Self.holdMax, hold * 2)
                until = now + hold
                isOnTrial = false
            }
            return false
        }
        failures += 1
        guard failures >= Self.failuresMax else { return false }
        let isRelapse = closedAt.map { now < $0 + Self.relapse } ?? false
        hold = isRelapse ? min(Self.holdMax, hold * 2) : Self.holdFirst
        (isOpen, isOnTrial, failures, until) = (true, false, 0, now + hold)
        return true
    }

    /// Notes any answer of the gateway.
    /// - Returns: whether the breaker closes.
    mutating func answered(now: UInt64) -> Bool {
        failures = 0
        guard isOpen, isOnTrial else { return false }
        (isOpen, isOnTrial, closedAt) = (false, false, now)
        return true
    }
}
