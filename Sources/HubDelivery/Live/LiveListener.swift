/// One listener's ring of facts that its filter wants, bounded in number and in rate.
struct LiveListener {
    /// Facts a second; of more, the rest is counted and left out.
    static let perSecondMax = 200.0
    /// Facts that wait for the listener; of more, the oldest are forgotten.
    static let keptMax = 500

    /// Tells the listener from all others of the process.
    let id: UInt64
    let filter: LiveFilter
    /// Another node listens.
    let isRelayed: Bool
    /// Milliseconds of the monotonic clock at the last question.
    private(set) var askedAt: Int64
    /// Number of the last question. Only this one may wait, so a listener has one that waits at most.
    private(set) var question: UInt64 = 1
    private var facts: [LiveFact] = []
    /// Number of the first of `facts`.
    private var first: UInt64 = 1
    private(set) var skipped: UInt64 = 0
    private var tokens = LiveListener.perSecondMax
    private var refilledAt: Int64

    init(_ id: UInt64, _ filter: LiveFilter, isRelayed: Bool = false, now: Int64) {
        self.id = id
        self.isRelayed = isRelayed
        self.filter = filter
        askedAt = now
        refilledAt = now
    }

    /// Number of the newest fact.
    var last: UInt64 { first + UInt64(facts.count) - 1 }

    /// Takes a question.
    mutating func ask(now: Int64) {
        askedAt = now
        question += 1
    }

    /// Room for one fact in this second; otherwise it counts as left out.
    mutating func admits(now: Int64) -> Bool {
        tokens = min(Self.perSecondMax, tokens + Double(now - refilledAt) * Self.perSecondMax / 1000)
        refilledAt = now
        guard tokens >= 1 else {
            skipped += 1
            return false
        }
        tokens -= 1
        return true
    }

    /// So many facts were left out.
    mutating func skip(_ count: UInt64) { skipped += count }

    mutating func add(_ fact: LiveFact) {
        facts.append(fact)
        guard facts.count >= 2 * Self.keptMax else { return }
        // Half of the ring at a time, so that each fact is moved once.
        facts.removeFirst(Self.keptMax)
        first += UInt64(Self.keptMax)
    }

    /// The facts behind a number, and whether some of them are gone.
    private func facts(after number: UInt64) -> (facts: [LiveFact], isGap: Bool) {
        let kept = facts.suffix(Self.keptMax)
        let start = last - UInt64(kept.count)
        guard number <= last else { return (Array(kept), true) }
        return (Array(kept.dropFirst(number > start ? Int(number - start) : 0)), number < start)
    }

    /// The facts behind a number, and a count of those left out beyond `before`.
    func page(after number: UInt64, skipped before: UInt64) -> LivePage {
        let (facts, isGap) = facts(after: number)
        return LivePage(
            listener: id, facts: facts, cursor: "\(id)-\(last)-\(skipped)", isGap: isGap, skipped: skipped - min(before, skipped),
            question: question)
    }
}
