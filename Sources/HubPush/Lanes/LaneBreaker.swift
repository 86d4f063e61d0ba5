/// Keeps a lane from sending into an outage: a pure state machine beside `LaneGate`, which is for mistakes in credentials.
///
/// Closed, it counts failures in a row. Open, it lets nothing through but one probe after each hold; an answer to the probe closes it,
/// and the lane then ramps up. Nothing that waits meanwhile is counted as an attempt.
struct LaneBreaker: Equatable {
    /// Pushes in a row without an answer, or answered 5xx, that are an outage.
    static let failuresMax = 10
    static let holdFirst: UInt64 = 5 * nanosecondsPerSecond
    static let holdMax: UInt64 = 120 * nanosecondsPerSecond
    /// An outage that comes back this soon goes on where the last one ended.
    static let relapse: UInt64 = 60 * nanosecondsPerSecond

    private(set) var isOpen = false
    private var failures = 0
    private var until: UInt64 = 0
    private var hold: UInt64 = 0
    private(set) var isProbing = false
    private var closedAt: UInt64?

    /// Nil: closed. Zero: one probe may go.
    /// - Parameter now: nanoseconds of the monotonic clock, like all moments here.
    func wait(now: UInt64) -> Duration? {
        guard isOpen else { return nil }
        return .nanoseconds(Int64(clamping: until > now ? until - now : 0))
    }

    /// One push goes out to see whether the gateway is back; the others wait for its result, or for the next hold if it has none.
    mutating func probe(now: UInt64) {
        isProbing = true
        until = now + hold
    }

    /// A push got no answer, or a 5xx.
    /// - Returns: whether this opens it.
    mutating func failed(now: UInt64) -> Bool {
        if isOpen {
            // Only a failed probe adds to it, not what was in flight when it opened.
            if isProbing {
                hold = min(Self.holdMax, hold * 2)
                until = now + hold
                isProbing = false
            }
            return false
        }
        failures += 1
        guard failures >= Self.failuresMax else { return false }
        let isRelapse = closedAt.map { now < $0 + Self.relapse } ?? false
        hold = isRelapse ? min(Self.holdMax, hold * 2) : Self.holdFirst
        (isOpen, isProbing, failures, until) = (true, false, 0, now + hold)
        return true
    }

    /// The gateway answered, whatever it said.
    /// - Returns: whether this closes it.
    mutating func answered(now: UInt64) -> Bool {
        failures = 0
        guard isOpen, isProbing else { return false }
        (isOpen, isProbing, closedAt) = (false, false, now)
        return true
    }
}
