internal import HubCore

/// Decides whether a gateway's word that a token is dead may be believed: a pure state machine.
///
/// A wrong host, topic or project makes every token look dead, and a token that was removed does not come back until its app is
/// started. So nothing is removed at once: a token is held until enough other answers, or enough time, have passed without the
/// share of bad tokens growing past what is normal. When it does, whatever is held is kept and nothing more is removed.
///
/// The share is one of tokens that the gateway accepted before. Anybody can invent others, so those are held apart and say nothing
/// about the lane. They are removed once some token was accepted; until then the setting may be wrong, and they are kept.
struct TokenJudge: Equatable {
    struct Rules: Equatable {
        /// More bad tokens than this share of the tokens answered for are not chance.
        var percentMax: Int
        /// Fewer bad tokens than this are never too many: they are no mass, whatever their share.
        var badMin: Int
        /// Tokens of the latest answers looked back on, each counted once.
        var span = 200
        /// Before so many tokens were answered for, only time decides.
        var samplesMin = 50
        /// Answers about other tokens that a held token waits for.
        var answersMin: UInt64 = 50
        /// How long a token is held when those answers do not come.
        var wait: UInt64 = 5 * nanosecondsPerSecond
        /// Tokens held at once; one more is kept, and judged when the gateway complains again.
        var heldMax = 1_000

        /// `BadDeviceToken` slows an APNs connection down, and its usual cause is a wrong topic or environment.
        static let apns = Rules(percentMax: 5, badMin: 3, samplesMin: 100)
        /// Uninstalled apps are everyday life for FCM.
        static let fcm = Rules(percentMax: 30, badMin: 16)
    }

    struct Held: Equatable, CustomStringConvertible, CustomReflectable {
        let token: String
        let app: String
        /// Milliseconds since 1970.
        let since: Int64
        fileprivate let at: UInt64
        fileprivate let answers: UInt64

        var description: String { "a token called dead at \(since)" }
        var customMirror: Mirror { Mirror(self, children: ["since": since]) }
    }

    struct Ruling: Equatable {
        /// Dead for certain: to be removed.
        var condemned: [Held] = []
        /// True once, when bad tokens have become too many.
        var hasTripped = false
    }

    /// The fate, for now, of a token that was called bad.
    enum Fate: Equatable {
        /// Held: it may yet be removed.
        case open
        /// Kept, because too many that were accepted before are called bad.
        case tooMany
        /// Kept, because none was ever accepted.
        case doubtful
    }

    let rules: Rules
    /// The latest answers by a hash of their token; the oldest is overwritten.
    private var samples: [(key: Int, isBad: Bool)] = []
    private var places: [Int: Int] = [:]
    private var oldest = 0
    private var bad = 0
    private var answers: UInt64 = 0
    /// In the order of their times.
    private(set) var held: [Held] = []
    /// Held tokens that no gateway ever accepted, in the same order.
    private(set) var strangers: [Held] = []
    /// Too many bad tokens at present: nothing is removed.
    private(set) var isTripped = false
    /// Some token was accepted: credentials, topic and project are right.
    private(set) var hasAccepted = false
    /// Tokens of `strangers` so far, while nothing was accepted: few are chance, more may be a wrong topic or project.
    private var doubts = 0

    init(_ rules: Rules) { self.rules = rules }

    static func == (left: TokenJudge, right: TokenJudge) -> Bool {
        left.rules == right.rules && left.held == right.held && left.isTripped == right.isTripped && left.answers == right.answers
            && left.bad == right.bad && left.strangers == right.strangers && left.hasAccepted == right.hasAccepted
    }

    /// When `due` has something to decide, in nanoseconds of the monotonic clock; nil while time decides nothing.
    var nextDue: UInt64? {
        let first = [held.first, isSetRight ? strangers.first : nil].compactMap { $0?.at }.min()
        return first.map { $0 + rules.wait }
    }

    /// The gateway took a push to this token.
    /// - Parameter isProven: whether it had accepted the token before.
    mutating func good(_ token: String, isProven: Bool = true, now: UInt64) -> Ruling {
        hasAccepted = true
        if note(token, isBad: false) { held.removeAll { $0.token == token } }
        if !isProven, !strangers.isEmpty { strangers.removeAll { $0.token == token } }
        return rule(now: now)
    }

    /// Some token of the same credentials, topic and project was accepted elsewhere.
    mutating func works() { hasAccepted = true }

    /// The gateway called this token dead.
    /// - Parameters:
    ///   - app: whose push it was.
    ///   - isProven: whether it had accepted the token before.
    ///   - since: milliseconds since 1970.
    mutating func bad(_ token: String, app: String = "", isProven: Bool = true, since: Int64, now: UInt64) -> (fate: Fate, ruling: Ruling) {
        if isProven {
            _ = note(token, isBad: true)
            if !isTripped { hold(token, app: app, since: since, now: now, in: \.held) }
            let ruling = rule(now: now)
            return (isTripped ? .tooMany : .open, ruling)
        }
        let count = strangers.count
        if !isTripped { hold(token, app: app, since: since, now: now, in: \.strangers) }
        if !hasAccepted { doubts += strangers.count - count }
        let ruling = rule(now: now)
        return (isTripped ? .tooMany : isSetRight ? .open : .doubtful, ruling)
    }

    /// Nothing speaks against credentials, topic and project.
    private var isSetRight: Bool { hasAccepted || doubts < rules.badMin }

    private mutating func hold(_ token: String, app: String, since: Int64, now: UInt64, in list: WritableKeyPath<TokenJudge, [Held]>) {
        guard self[keyPath: list].count < rules.heldMax, !self[keyPath: list].contains(where: { $0.token == token }) else { return }
        self[keyPath: list].append(Held(token: token, app: app, since: since, at: now, answers: answers))
    }

    /// Decides by the time that has passed.
    mutating func due(now: UInt64) -> Ruling { rule(now: now) }

    /// Forgets the answers so far: what was wrong has been put right, and a push was accepted.
    mutating func reset() {
        self = TokenJudge(rules)
        hasAccepted = true
    }

    /// - Returns: whether the latest answer about this token was a bad one.
    private mutating func note(_ token: String, isBad: Bool) -> Bool {
        answers += 1
        let key = token.hashValue
        if let place = places[key] {
            let wasBad = samples[place].isBad
            bad += (isBad ? 1 : 0) - (wasBad ? 1 : 0)
            samples[place].isBad = isBad
            return wasBad
        }
        if samples.count < rules.span {
            places[key] = samples.count
            samples.append((key, isBad))
        } else {
            if samples[oldest].isBad { bad -= 1 }
            places[samples[oldest].key] = nil
            samples[oldest] = (key, isBad)
            places[key] = oldest
            oldest = (oldest + 1) % rules.span
        }
        if isBad { bad += 1 }
        return false
    }

    private func isTooMany(of least: Int) -> Bool {
        bad >= rules.badMin && samples.count >= least && bad * 100 > rules.percentMax * samples.count
    }

    private mutating func rule(now: UInt64) -> Ruling {
        if isTripped {
            isTripped = isTooMany(of: 0)
            return Ruling()
        }
        if isTooMany(of: rules.samplesMin) { return trip() }
        var count = 0
        for token in held {
            // With few answers there will be no better evidence than time, and a doubtful share then counts against all.
            if hasWaited(token, now: now), isTooMany(of: 0) { return trip() }
            guard isDecided(token, now: now) else { break }
            count += 1
        }
        let strangerCount = isSetRight ? strangers.prefix { isDecided($0, now: now) }.count : 0
        if count + strangerCount == 0 { return Ruling() }
        defer {
            held.removeFirst(count)
            strangers.removeFirst(strangerCount)
        }
        return Ruling(condemned: Array(held[..<count]) + strangers[..<strangerCount])
    }

    private func hasWaited(_ token: Held, now: UInt64) -> Bool { now >= token.at + rules.wait }

    /// Enough time or enough other answers have passed.
    private func isDecided(_ token: Held, now: UInt64) -> Bool {
        hasWaited(token, now: now) || answers - token.answers >= rules.answersMin && samples.count >= rules.samplesMin
    }

    private mutating func trip() -> Ruling {
        isTripped = true
        (held, strangers) = ([], [])
        return Ruling(hasTripped: true)
    }
}

/// Tokens that belong to another Firebase project: marked for a while instead of asked about with every push. Bounded.
struct ForeignTokens {
    static let countMax = 10_000
    /// Long enough to spare FCM the question, short enough that a corrected configuration is noticed.
    static let keptFor: UInt64 = 3600 * nanosecondsPerSecond
    /// So many within that time are no single mistakes.
    static let fewMax = 5

    private var until: [Int: UInt64] = [:]

    mutating func isMarked(_ token: String, now: UInt64) -> Bool {
        guard !until.isEmpty, let end = until[token.hashValue] else { return false }
        if end > now { return true }
        until[token.hashValue] = nil
        return false
    }

    /// True when more than a few are marked.
    mutating func mark(_ token: String, now: UInt64) -> Bool {
        if until.count >= Self.countMax { until = until.filter { $0.value > now } }
        if until.count < Self.countMax { until[token.hashValue] = now + Self.keptFor }
        return until.count > Self.fewMax
    }
}

/// Which notifications a lane has lately seen accepted: a complaint about a token is believed only for those, because the same
/// words can be about the payload. Bounded; the oldest are forgotten.
struct AcceptedShapes {
    static let countMax = 1_000

    private var order: [Int] = []
    private var oldest = 0
    private var known: Set<Int> = []

    mutating func note(_ shape: Int) {
        guard known.insert(shape).inserted else { return }
        if order.count < Self.countMax {
            order.append(shape)
        } else {
            known.remove(order[oldest])
            order[oldest] = shape
            oldest = (oldest + 1) % Self.countMax
        }
    }

    func contains(_ shape: Int) -> Bool { known.contains(shape) }
}
