internal import HubCore

/// How many pushes a second a lane may take: a token bucket that is filled slowly at first. A pure state machine over a clock.
///
/// A full bucket is for what is no bulk: it goes out at once. Where more is asked for, the rate grows from a twentieth to the whole
/// over a minute, as FCM asks; once it is there it stays as long as bulk goes on. After an outage the bucket is empty and the rate
/// grows from ten a second.
///
/// Where the gateway says that the quota is spent, nothing goes out for as long as it asks; then the most the rate may reach is halved,
/// and a tenth of the whole comes back each minute.
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
    /// How long nothing goes out when the quota is spent: at least, where the gateway names no time, and at most, because by then every push
    /// that waits for it is given up.
    static let spentLeast = Duration.seconds(1)
    static let spentUsual = FCMOutcome.quotaWait
    static let spentMost = RetryPolicy.retryingMax
    /// The rate is not lowered below this much of the whole.
    static let loweredShare = 0.05
    /// So much of the whole comes back in a minute.
    static let returnShare = 0.1
    /// Waiters are called when the bucket has what comes in so many seconds, and not for every push.
    static let batchSeconds = 0.02

    private enum Phase: Equatable {
        case idle
        case ramp(since: UInt64, from: Double, isRecovery: Bool)
        case full
    }

    /// A second; nil: no limit except after an outage.
    private(set) var steady: Double?
    private var burst = 0.0
    private var phase = Phase.idle
    private var level: Double
    private var at: UInt64 = 0
    /// When more was asked for than was there.
    private var shortAt: UInt64 = 0
    /// The quota is spent till then; zero: it never was.
    private var heldUntil: UInt64 = 0
    /// The most that could be given a second at `heldUntil`; nil: the whole.
    private var lowered: Double?

    /// - Parameter perMinute: the gateway's quota; nil: it has none.
    init(perMinute: Int?) {
        level = 0
        adopt(perMinute: perMinute)
        level = burst
    }

    /// Goes on with another quota; what has been taken and complained of stays.
    mutating func adopt(perMinute: Int?) {
        steady = perMinute.map { Double($0) / 60 * Self.share }
        burst = perMinute.map { min(Self.burstMax, max(1, Double($0) / 10)) } ?? 0
        level = min(level, burst)
    }

    private var top: Double { steady ?? Self.recoveryTop }

    private var isRecovering: Bool { if case .ramp(_, _, isRecovery: true) = phase { true } else { false } }

    private var isLimited: Bool { steady != nil || isRecovering }

    private func rate(at now: UInt64) -> Double {
        let ceiling = ceiling(now: now)
        guard case .ramp(let since, let from, _) = phase else { return ceiling }
        return min(ceiling, from + (top - from) * min(1, Self.seconds(since, now) / Self.rampSeconds))
    }

    /// The most that can be given a second at present, ramps aside.
    func ceiling(now: UInt64) -> Double {
        guard let lowered else { return top }
        return min(top, lowered + top * Self.returnShare * Self.seconds(heldUntil, now) / 60)
    }

    private func isHeld(_ now: UInt64) -> Bool { now < heldUntil }

    /// For metrics: how many a second at present; nil: no limit.
    func allowed(now: UInt64) -> Double? { isHeld(now) ? 0 : isLimited ? rate(at: now) : nil }

    private static func seconds(_ from: UInt64, _ to: UInt64) -> Double { to > from ? Double(to - from) / Double(nanosecondsPerSecond) : 0 }

    /// Fills the bucket for the time that has passed.
    private mutating func refill(now: UInt64) {
        guard now > at else { return }
        // Nothing gathers while the quota is spent.
        let from = max(at, heldUntil)
        at = now
        guard isLimited, now > from else { return }
        let (before, after) = (rate(at: from), rate(at: now))
        let isRecovering = isRecovering
        switch phase {
        case .ramp(let since, _, _) where Self.seconds(since, now) >= Self.rampSeconds:
            phase = steady == nil ? .idle : .full
        case .ramp(_, _, isRecovery: false) where Self.seconds(shortAt, now) > Self.quietSeconds: phase = .idle
        case .full where Self.seconds(shortAt, now) > Self.quietSeconds: phase = .idle
        default: break
        }
        let cap =
            if isRecovering {
                // After an outage nothing may gather: what was held back must not go out in one go.
                max(1, after * Self.batchSeconds * 2)
            } else if phase == .idle {
                // More than this at once is bulk, however fast bulk may get.
                burst
            } else {
                max(burst, after * Self.batchSeconds * 5)
            }
        level = min(cap, level + (before + after) / 2 * Self.seconds(from, now))
        if lowered != nil, ceiling(now: now) >= top { lowered = nil }
    }

    /// What can be taken now.
    mutating func room(now: UInt64) -> (count: Int, urgent: Int) {
        refill(now: now)
        if isHeld(now) { return (0, 0) }
        guard isLimited else { return (.max, .max) }
        let open = Int(max(0, level))
        // After an outage or a spent quota, being ahead is what must not be.
        return (open, isRecovering || lowered != nil ? open : Int(max(0, level + top * Self.aheadSeconds)))
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
        shortAt = max(shortAt, now)
        if phase == .idle, steady != nil { begin(after: now, isRecovery: false) }
    }

    /// When there is something to take again.
    func wait(now: UInt64) -> Duration {
        if isHeld(now) { return .nanoseconds(Int64(clamping: heldUntil - now)) }
        let rate = rate(at: now)
        let missing = max(1, rate * Self.batchSeconds) - level
        return .nanoseconds(Int64(max(1_000_000, missing / rate * Double(nanosecondsPerSecond))))
    }

    /// The gateway is back after an outage.
    mutating func recover(now: UInt64) {
        refill(now: now)
        level = 0
        begin(after: max(now, heldUntil), isRecovery: true)
    }

    private mutating func begin(after moment: UInt64, isRecovery: Bool) {
        phase = .ramp(since: moment, from: isRecovery ? min(Self.recoveryFirst, top) : rampFirst, isRecovery: isRecovery)
        shortAt = moment
    }

    private var rampFirst: Double { max(top * Self.rampShare, min(top, Self.recoveryFirst)) }

    /// The gateway says that the quota is spent. What was sent before the wait that this began is one complaint with it.
    /// - Parameters:
    ///   - asked: how long the gateway wants to be left alone; nil: it did not say.
    ///   - sentAt: when the push was handed over that it answered so.
    /// - Returns: whether this complaint is a new one, which lowers the rate.
    mutating func spent(for asked: Duration?, sentAt: UInt64, now: UInt64) -> Bool {
        refill(now: now)
        let isNew = sentAt >= heldUntil
        if steady != nil {
            let most = ceiling(now: now)
            if isNew { lowered = max(top * Self.loweredShare, most / 2) } else if lowered != nil { lowered = most }
        }
        let wait = min(Self.spentMost, max(Self.spentLeast, asked ?? Self.spentUsual))
        heldUntil = max(heldUntil, now + UInt64(clamping: wait.milliseconds) * 1_000_000)
        level = min(level, 0)
        if isLimited { begin(after: heldUntil, isRecovery: isRecovering) }
        return isNew
    }
}
