internal import HubCore
internal import HubDelivery

/// Push rate of a lane: a token bucket with a ramp. A pure state machine over a clock.
///
/// A full bucket serves small amounts at once. For bulk, the rate grows from a twentieth to the whole within a minute, as FCM asks.
/// It stays there as long as the bulk lasts. After an outage the bucket is empty, and the rate grows from ten per second.
///
/// A spent quota stops everything for the time that the gateway asks. The highest rate is halved then, and a tenth of the whole
/// returns per minute.
struct LaneRate: Equatable {
    /// Share of the quota, which leaves some for the project's other senders and for urgent pushes.
    static let share = 0.8
    /// Largest bucket, and never more than a tenth of the minute's quota; more at once is bulk. Sessions of some thousand people are small:
    /// FCM's usual quota gives as much in 0.25 s.
    static let burstMax = 2_000.0
    /// Urgent pushes may be ahead of the rate by this many seconds of it; others wait until that is recovered.
    static let aheadSeconds = 5.0
    static let rampSeconds = 60.0
    /// Share of the whole rate at the start of a ramp.
    static let rampShare = 0.05
    /// Pushes per second at the start of a ramp after an outage.
    static let recoveryFirst = 10.0
    /// Pushes per second at the end of a ramp after an outage, on a lane without a quota.
    static let recoveryTop = 4_000.0
    /// Time without bulk after which the next bulk ramps up again.
    static let quietSeconds = 30.0
    /// Shortest stop after a spent quota.
    static let spentLeast = Duration.seconds(1)
    /// Stop if the gateway names no time.
    static let spentUsual = FCMOutcome.quotaWait
    /// Longest stop: pushes that wait for it have been given up by then.
    static let spentMost = RetryPolicy.retryingMax
    /// Lower bound of the rate, as a share of the whole.
    static let loweredShare = 0.05
    /// Share of the whole that returns per minute.
    static let returnShare = 0.1
    /// Waiting pushes resume when the bucket has the tokens of this many seconds, not for every token.
    static let batchSeconds = 0.02

    private enum Phase: Equatable {
        case idle
        case ramp(since: UInt64, from: Double, isRecovery: Bool)
        case full
    }

    /// Pushes per second; nil: no limit except after an outage.
    private(set) var steady: Double?
    private var burst = 0.0
    private var phase = Phase.idle
    private var level: Double
    private var at: UInt64 = 0
    /// Last time at which demand exceeded supply.
    private var shortAt: UInt64 = 0
    /// End of the stop after a spent quota; zero: never spent.
    private var heldUntil: UInt64 = 0
    /// Highest rate per second at `heldUntil`; nil: the whole.
    private var lowered: Double?

    /// - Parameter perMinute: the gateway's quota; nil: none.
    init(perMinute: Int?) {
        level = 0
        adopt(perMinute: perMinute)
        level = burst
    }

    /// Changes the quota; tokens taken and complaints stay.
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

    /// Highest rate per second at present, apart from ramps.
    func ceiling(now: UInt64) -> Double {
        guard let lowered else { return top }
        return min(top, lowered + top * Self.returnShare * Self.seconds(heldUntil, now) / 60)
    }

    private func isHeld(_ now: UInt64) -> Bool { now < heldUntil }

    /// Pushes per second at present, for metrics; nil: no limit.
    func allowed(now: UInt64) -> Double? { isHeld(now) ? 0 : isLimited ? rate(at: now) : nil }

    private static func seconds(_ from: UInt64, _ to: UInt64) -> Double { to > from ? Double(to - from) / Double(nanosecondsPerSecond) : 0 }

    /// Adds the tokens of the elapsed time.
    private mutating func refill(now: UInt64) {
        guard now > at else { return }
        // No tokens accumulate while the quota is spent.
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
                // After an outage no tokens may accumulate, because held-back pushes must not go out at once.
                max(1, after * Self.batchSeconds * 2)
            } else if phase == .idle {
                // More than this at once is bulk, whatever the rate of bulk.
                burst
            } else {
                max(burst, after * Self.batchSeconds * 5)
            }
        level = min(cap, level + (before + after) / 2 * Self.seconds(from, now))
        if lowered != nil, ceiling(now: now) >= top { lowered = nil }
    }

    /// Tokens available now.
    mutating func room(now: UInt64) -> (count: Int, urgent: Int) {
        refill(now: now)
        if isHeld(now) { return (0, 0) }
        guard isLimited else { return (.max, .max) }
        let open = Int(max(0, level))
        // No advance for urgent pushes after an outage or a spent quota.
        return (open, isRecovering || lowered != nil ? open : Int(max(0, level + top * Self.aheadSeconds)))
    }

    /// Takes one token.
    /// - Returns: false if there is none.
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

    /// Time until tokens are available.
    func wait(now: UInt64) -> Duration {
        if isHeld(now) { return .nanoseconds(Int64(clamping: heldUntil - now)) }
        let rate = rate(at: now)
        let missing = max(1, rate * Self.batchSeconds) - level
        return .nanoseconds(Int64(max(1_000_000, missing / rate * Double(nanosecondsPerSecond))))
    }

    /// Starts the ramp after an outage.
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

    /// Stops after a spent quota. Complaints about pushes sent before the stop belong to the complaint that began it.
    /// - Parameters:
    ///   - asked: wait requested by the gateway; nil: none.
    ///   - sentAt: when the refused push was handed over.
    /// - Returns: whether the complaint is new, which lowers the rate.
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
