/// How many pushes a second a lane may take: a token bucket that is filled slowly at first. A pure state machine over a clock.
///
/// A full bucket is for what is no bulk: it goes out at once. Where more is asked for, the rate grows from a twentieth to the whole
/// over a minute, as FCM asks; once it is there it stays as long as bulk goes on. After an outage the bucket is empty and the rate
/// grows from ten a second.
struct LaneRate: Equatable {
    /// Of the quota, so that others who send for the project, and what is urgent, have some left.
    static let share = 0.8
    /// This many at most are no bulk, and never more than a tenth of the minute's quota.
    static let burstMax = 500.0
    /// Urgent pushes may be ahead of the rate by what it gives in this many seconds; the others wait until that is made up for.
    static let aheadSeconds = 5.0
    static let rampSeconds = 60.0
    /// What the ramp begins with, of the whole rate.
    static let rampShare = 0.05
    /// What the ramp begins with after an outage, pushes a second.
    static let recoveryFirst = 10.0
    /// Where the ramp after an outage ends on a lane without a quota, pushes a second.
    static let recoveryTop = 4_000.0
    /// Without bulk for this long, the next one ramps up again.
    static let quietSeconds = 30.0
    /// Waiters are called when the bucket has what comes in so many seconds, and not for every push.
    static let batchSeconds = 0.02

    private enum Phase: Equatable {
        case idle
        case ramp(since: UInt64, from: Double, isRecovery: Bool)
        case full
    }

    /// A second; nil: no limit except after an outage.
    let steady: Double?
    private let burst: Double
    private var phase = Phase.idle
    private var level: Double
    private var at: UInt64 = 0
    /// When more was asked for than was there.
    private var shortAt: UInt64 = 0

    /// - Parameter perMinute: the gateway's quota; nil: it has none.
    init(perMinute: Int?) {
        steady = perMinute.map { Double($0) / 60 * Self.share }
        burst = perMinute.map { min(Self.burstMax, max(1, Double($0) / 10)) } ?? 0
        level = burst
    }

    private var top: Double { steady ?? Self.recoveryTop }

    private var isRecovering: Bool { if case .ramp(_, _, isRecovery: true) = phase { true } else { false } }

    private var isLimited: Bool { steady != nil || isRecovering }

    private func rate(at now: UInt64) -> Double {
        guard case .ramp(let since, let from, _) = phase else { return top }
        return from + (top - from) * min(1, Self.seconds(since, now) / Self.rampSeconds)
    }

    /// For metrics: how many a second at present; nil: no limit.
    func allowed(now: UInt64) -> Double? { isLimited ? rate(at: now) : nil }

    private static func seconds(_ from: UInt64, _ to: UInt64) -> Double { to > from ? Double(to - from) / Double(nanosecondsPerSecond) : 0 }

    /// Fills the bucket for the time that has passed.
    private mutating func refill(now: UInt64) {
        guard now > at else { return }
        defer { at = now }
        guard isLimited else { return }
        let (before, after) = (rate(at: at), rate(at: now))
        // After an outage nothing may gather: what was held back must not go out in one go.
        let cap = isRecovering ? max(1, after * Self.batchSeconds * 2) : max(burst, after * Self.batchSeconds * 5)
        level = min(cap, level + (before + after) / 2 * Self.seconds(at, now))
        switch phase {
        case .ramp(let since, _, _) where Self.seconds(since, now) >= Self.rampSeconds:
            phase = steady == nil ? .idle : .full
        case .ramp(_, _, isRecovery: false) where Self.seconds(shortAt, now) > Self.quietSeconds: phase = .idle
        case .full where Self.seconds(shortAt, now) > Self.quietSeconds: phase = .idle
        default: break
        }
    }

    /// What can be taken now.
    mutating func room(now: UInt64) -> (count: Int, urgent: Int) {
        refill(now: now)
        guard isLimited else { return (.max, .max) }
        let open = Int(max(0, level))
        return (open, isRecovering ? open : Int(max(0, level + top * Self.aheadSeconds)))
    }

    /// Takes one.
    /// - Returns: false where there is none.
    mutating func take(isUrgent: Bool, now: UInt64) -> Bool {
        let room = room(now: now)
        guard (isUrgent ? room.urgent : room.count) > 0 else {
            noteShort(now: now)
            return false
        }
        if isLimited {
            level -= 1
            if level < 1 { noteShort(now: now) }
        }
        return true
    }

    private mutating func noteShort(now: UInt64) {
        shortAt = now
        if phase == .idle, let steady { phase = .ramp(since: now, from: max(steady * Self.rampShare, min(steady, Self.recoveryFirst)), isRecovery: false) }
    }

    /// When there is something to take again.
    func wait(now: UInt64) -> Duration {
        let rate = rate(at: now)
        let missing = max(1, rate * Self.batchSeconds) - level
        return .nanoseconds(Int64(max(1_000_000, missing / rate * Double(nanosecondsPerSecond))))
    }

    /// The gateway is back after an outage.
    mutating func recover(now: UInt64) {
        refill(now: now)
        level = 0
        phase = .ramp(since: now, from: min(Self.recoveryFirst, top), isRecovery: true)
        shortAt = now
    }
}
