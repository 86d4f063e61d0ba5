internal import HubCore

/// Decides whether to believe a gateway that calls a token dead: a pure state machine.
///
/// A wrong host, topic or project makes every token look dead, and a removed token returns only at its app's next start. So each token
/// is held until enough other answers, or enough time, have passed with a normal share of bad tokens. If the share becomes too large,
/// all held tokens are kept, and none is removed any more.
///
/// The share counts only tokens that the gateway accepted before. Others can be invented, so they are held separately and say nothing
/// about the lane. They are removed only after some token was accepted; until then the setting may be wrong.
struct TokenJudge: Equatable {
    struct Rules: Equatable {
        /// Percentage of bad tokens above which chance is ruled out.
        var percentMax: Int
        /// Minimum of bad tokens that can be too many, whatever their share.
        var badMin: Int
        /// Latest tokens with an answer that are looked back on, each counted once.
        var span = 200
        /// Answered tokens below which only time decides.
        var samplesMin = 50
        /// Answers about other tokens that end a token's hold.
        var answersMin: UInt64 = 50
        /// Time that ends a token's hold without those answers.
        var wait: UInt64 = 5 * nanosecondsPerSecond
        /// Tokens held at once. If exceeded, a token is kept, and judged at its next complaint.
        var heldMax = 1_000

        /// `BadDeviceToken` slows an APNs connection down, and its usual cause is a wrong topic or environment.
        static let apns = Rules(percentMax: 5, badMin: 3, samplesMin: 100)
        /// Uninstalled apps are normal for FCM.
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
        /// Certainly dead: to be removed.
        var condemned: [Held] = []
        /// True once, when bad tokens become too many.
        var hasTripped = false
    }

    /// Preliminary fate of a token called bad.
    enum Fate: Equatable {
        /// Held: it may still be removed.
        case open
        /// Kept, because too many accepted tokens are called bad.
        case tooMany
        /// Kept, because no token was ever accepted.
        case doubtful
    }

    let rules: Rules
    /// Latest answers by a hash of their token; the oldest is overwritten.
    private var samples: [(key: Int, isBad: Bool)] = []
    private var places: [Int: Int] = [:]
    private var oldest = 0
    private var bad = 0
    private var answers: UInt64 = 0
    /// In order of time.
    private(set) var held: [Held] = []
    /// Held tokens that no gateway ever accepted, in order of time.
    private(set) var strangers: [Held] = []
    /// Too many bad tokens at present: none is removed.
    private(set) var isTripped = false
    /// Some token was accepted: credentials, topic and project are right.
    private(set) var hasAccepted = false
    /// Number of tokens added to `strangers` before any acceptance. Few are chance; more may be a wrong topic or project.
    private var doubts = 0

    init(_ rules: Rules) { self.rules = rules }

    static func == (left: TokenJudge, right: TokenJudge) -> Bool {
        left.rules == right.rules && left.held == right.held && left.isTripped == right.isTripped && left.answers == right.answers
            && left.bad == right.bad && left.strangers == right.strangers && left.hasAccepted == right.hasAccepted
    }

    /// Time of the next decision by `due`, in nanoseconds of the monotonic clock; nil: none.
    var nextDue: UInt64? {
        let first = [held.first, isSetRight ? strangers.first : nil].compactMap { $0?.at }.min()
        return first.map { $0 + rules.wait }
    }

    /// Notes that the gateway accepted a push to this token.
    /// - Parameter isProven: whether it had accepted the token before.
    mutating func good(_ token: String, isProven: Bool = true, now: UInt64) -> Ruling {
        hasAccepted = true
        if note(token, isBad: false) { held.removeAll { $0.token == token } }
        if !isProven, !strangers.isEmpty { strangers.removeAll { $0.token == token } }
        return rule(now: now)
    }

    /// Notes that another token of the same credentials, topic and project was accepted elsewhere.
    mutating func works() { hasAccepted = true }

    /// Notes that the gateway called this token dead.
    /// - Parameters:
    ///   - app: app of the push.
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

    /// No evidence against credentials, topic and project.
    private var isSetRight: Bool { hasAccepted || doubts < rules.badMin }

    private mutating func hold(_ token: String, app: String, since: Int64, now: UInt64, in list: WritableKeyPath<TokenJudge, [Held]>) {
        guard self[keyPath: list].count < rules.heldMax, !self[keyPath: list].contains(where: { $0.token == token }) else { return }
        self[keyPath: list].append(Held(token: token, app: app, since: since, at: now, answers: answers))
    }

    /// Decides about tokens whose wait has ended.
    mutating func due(now: UInt64) -> Ruling { rule(now: now) }

    /// Forgets all answers after the setting was corrected and a push was accepted.
    mutating func reset() {
        self = TokenJudge(rules)
        hasAccepted = true
    }

    /// - Returns: whether the previous answer about this token was a bad one.
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
        assert(bad >= 0 && bad <= samples.count && places.count == samples.count, "\(bad) bad answers of \(samples.count)")
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
            // With few answers no better evidence than time will come, so a doubtful share counts against all tokens.
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

/// Tokens of another Firebase project: marked for a while, so that pushes to them are not sent. Bounded.
struct ForeignTokens {
    static let countMax = 10_000
    /// Long enough to spare FCM pointless pushes, short enough to notice a corrected configuration.
    static let keptFor: UInt64 = 3600 * nanosecondsPerSecond
    /// More marks than this at a time cannot be single mistakes.
    static let fewMax = 5

    private var until: [Int: UInt64] = [:]

    mutating func isMarked(_ token: String, now: UInt64) -> Bool {
        guard !until.isEmpty, let end = until[token.hashValue] else { return false }
        if end > now { return true }
        until[token.hashValue] = nil
        return false
    }

    /// - Returns: true if more than a few tokens are marked.
    mutating func mark(_ token: String, now: UInt64) -> Bool {
        if until.count >= Self.countMax { until = until.filter { $0.value > now } }
        if until.count < Self.countMax { until[token.hashValue] = now + Self.keptFor }
        return until.count > Self.fewMax
    }
}

/// Notification shapes that a lane has seen accepted lately. A complaint about a token is believed only for these, because the same
/// words can concern the payload. Bounded; the oldest shapes are forgotten.
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
