/// Sees to it that what has come is heard before anything falls due, and notices when the hub is late.
///
/// A round asks every loop to read what lies on its sockets and to report it. The delivery task lets a push fall due only after a round.
/// Each loop's answer follows its reports, so a receipt that was already in the process prevents its push. While receipts are awaited,
/// there is a round each `beatMilliseconds`. A round that takes long, or begins late, tells how busy the hub is. A value over a clock
/// that is passed in.
///
/// A source is one loop of this process, or one other node with all its loops. A node that failed to answer is asked, but not waited for
/// before it has answered again.
struct Hearing: Sendable {
    /// Loops and delivery's own task are asked so often how late they are, in milliseconds.
    static let beatMilliseconds: Int64 = 100
    /// A loop that has not answered for so long is waited for no more, in milliseconds: others have a right to their push.
    static let roundMax: Int64 = 2_000
    /// Milliseconds for the answers that lie there when delivery's own task goes on after a standstill.
    static let standstillMax: Int64 = 250

    /// Sources below this are loops of this process.
    private let loopCount: Int
    private var sources: Set<Int>
    /// Other nodes that let a round run out and have not answered since.
    private var silent: Set<Int> = []
    private var round: UInt64 = 0
    private var askedAt: Int64?
    /// When the round is given up.
    private var givesUpAt = Int64.max
    private var hasStoodStill = false
    /// Sources that have not answered the round.
    private var awaited: Set<Int> = []
    private var newcomers = 0
    /// Until when loops had newcomers that they had not let in, as of the last round; nil: they had none.
    private var crowdedUntil: Int64?
    private var lastAskedAt: Int64?
    /// Everything that had come by then was heard, in milliseconds.
    private var heardUpTo = Int64.min
    private var wakeAt: Int64?

    /// A stretch in which the hub was late.
    struct Delay: Equatable {
        let from: Int64
        let until: Int64
        var least = Lateness.leastMilliseconds
    }

    init(loopCount: Int) {
        self.loopCount = loopCount
        sources = Set(0..<loopCount)
    }

    /// Another node takes part from the next round on.
    mutating func add(source: Int) {
        assert(source >= loopCount && !sources.contains(source), "source \(source) of another node")
        sources.insert(source)
    }

    /// Another node takes part no more.
    /// - Returns: how late the hub was, where the round waited for this node alone.
    mutating func remove(source: Int, now: Int64) -> Delay? {
        sources.remove(source)
        silent.remove(source)
        return awaited.remove(source) != nil && awaited.isEmpty ? end(now: now) : nil
    }

    /// The time up to which pushes may fall due.
    /// - Parameters:
    ///   - now: when the inbox was read.
    ///   - isWaiting: somebody's receipt is awaited; else nothing can fall due, and only what is outdated goes.
    func dueUpTo(now: Int64, isWaiting: Bool) -> Int64 { sources.isEmpty || !isWaiting ? now : min(now, heardUpTo) }

    /// The inbox is read.
    /// - Returns: how late that is.
    mutating func woke(now: Int64) -> Delay? {
        guard let wakeAt, wakeAt < now else { return nil }
        self.wakeAt = nil
        return Delay(from: wakeAt, until: now)
    }

    /// Whether to ask the loops now, and under which number.
    /// - Parameters:
    ///   - due: when the next push falls due.
    ///   - isWaiting: somebody's receipt is awaited.
    mutating func ask(now: Int64, due: Int64?, isWaiting: Bool) -> UInt64? {
        guard !sources.isEmpty, askedAt == nil, isWaiting else { return nil }
        let isDue = due.map { $0 <= now && heardUpTo < $0 } ?? false
        guard isDue || now - (lastAskedAt ?? .min / 2) >= Self.beatMilliseconds else { return nil }
        round += 1
        (askedAt, lastAskedAt, awaited, newcomers) = (now, now, sources.subtracting(silent), 0)
        (givesUpAt, hasStoodStill) = (now + Self.roundMax, false)
        return round
    }

    /// A source has reported all that had come when it was asked.
    /// - Parameter newcomers: connections that the source has not let in yet, plus people who came back from the hub's own absence since
    ///   the last answer. As long as people keep coming back, others are on the way.
    /// - Returns: how late the hub was, where this was the last source to answer.
    mutating func answered(_ number: UInt64, by source: Int, newcomers count: Int, now: Int64) -> Delay? {
        silent.remove(source)
        guard number == round, askedAt != nil, awaited.remove(source) != nil else { return nil }
        newcomers += count
        return awaited.isEmpty ? end(now: now) : nil
    }

    /// Waits no more for a source that does not answer. A task that comes too late to this may have stood still with all others: the
    /// answers are about to come.
    mutating func giveUp(now: Int64) -> Delay? {
        guard askedAt != nil, now >= givesUpAt else { return nil }
        if !hasStoodStill, now > givesUpAt + Lateness.leastMilliseconds {
            (givesUpAt, hasStoodStill) = (now + Self.standstillMax, true)
            return nil
        }
        silent.formUnion(awaited.filter { $0 >= loopCount })
        return end(now: now)
    }

    private mutating func end(now: Int64) -> Delay? {
        guard let askedAt else { return nil }
        self.askedAt = nil
        awaited = []
        heardUpTo = askedAt
        guard newcomers > 0 else {
            crowdedUntil = nil
            return Delay(from: askedAt, until: now)
        }
        defer { crowdedUntil = now }
        return Delay(from: crowdedUntil ?? askedAt, until: now, least: 0)
    }

    /// When the delivery task has to look again; nil: nothing is waited for.
    mutating func nextLook(due: Int64?, isWaiting: Bool) -> Int64? {
        guard !sources.isEmpty, isWaiting else {
            wakeAt = due
            return due
        }
        if askedAt != nil {
            wakeAt = nil
            return givesUpAt
        }
        wakeAt = [due, lastAskedAt.map { $0 + Self.beatMilliseconds }].compactMap { $0 }.min()
        return wakeAt
    }
}
