import HubCore
import HubTesting

/// The memory of one process of Redis: an epoch with its stream, its beats, and its dead. The first one, and each after a loss, is empty.
struct SimMemory {
    struct Entry {
        let id: StreamID
        /// The run and its number; nil: a word of Redis itself.
        let origin: (run: UInt64, number: UInt64)?
        /// Nil: its sender has given it up.
        let message: NodeMessage?
    }

    /// The process runs, and answers.
    var isUp = true
    /// Milliseconds by which its clock is ahead of the true one.
    let ahead: Int64
    /// From the oldest one on that was not trimmed.
    private(set) var entries: [Entry] = []
    /// Entries that were trimmed: places count on from them.
    private(set) var trimmed = 0
    private var lastID = StreamID.zero
    /// The last number that each run appended.
    private var numbers: [UInt64: UInt64] = [:]
    private(set) var beats: [UInt64: Int64] = [:]
    /// Runs that were declared dead.
    var dead: Set<UInt64> = []

    init(ahead: Int64) { self.ahead = ahead }

    /// A replica without the entries of the last milliseconds. Only a node that takes no look at the epoch finds anything of it.
    func replica(ahead: Int64, lag: Int64, now: Int64) -> SimMemory {
        var copy = SimMemory(ahead: ahead)
        let until = time(now - lag, self.ahead)
        (copy.entries, copy.trimmed) = (Array(entries.prefix { $0.id.milliseconds <= until }), trimmed)
        copy.lastID = copy.entries.last?.id ?? .zero
        for case (let run, let number)? in copy.entries.map(\.origin) { copy.numbers[run] = max(copy.numbers[run] ?? 0, number) }
        (copy.beats, copy.dead) = (beats, dead)
        return copy
    }

    /// The place behind the newest entry.
    var end: Int { trimmed + entries.count }

    subscript(_ place: Int) -> Entry { entries[place - trimmed] }

    /// The place of the first entry behind an id.
    func place(after id: StreamID) -> Int { trimmed + (entries.firstIndex { $0.id > id } ?? entries.count) }

    /// Appends a run's entries but for those that it appended before, as `ScaleOutScripts.append`.
    /// - Returns: whether there is anything new.
    mutating func append(_ words: [(number: UInt64, message: NodeMessage?)], of run: UInt64, now: Int64) -> Bool {
        let known = numbers[run] ?? 0
        let news = words.filter { $0.number > known }
        for word in news { add((run, word.number), word.message, now) }
        if let last = news.last { numbers[run] = last.number }
        return !news.isEmpty
    }

    mutating func beat(_ run: UInt64) { beats[run, default: 0] += 1 }

    /// Declares a run dead whose beat still stands where it was seen, as `MemberScripts.declareDead`.
    /// - Parameter beat: nil: the run has never beaten here.
    mutating func declareDead(_ run: UInt64, beat: Int64?, now: Int64) -> Bool {
        guard beats[run] == beat else { return false }
        end(run, now: now)
        return true
    }

    /// A run that stops declares itself dead.
    mutating func end(_ run: UInt64, now: Int64) {
        beats[run] = nil
        dead.insert(run)
        add(nil, .dead(run), now)
    }

    /// The id of the oldest entry; zero: there is none.
    var oldest: StreamID { entries.first?.id ?? .zero }

    /// XTRIM MINID.
    mutating func trim(before minimum: StreamID) {
        let count = entries.firstIndex { $0.id >= minimum } ?? entries.count
        entries.removeFirst(count)
        trimmed += count
    }

    /// Nobody reads here any more.
    mutating func forget() { entries = [] }

    private mutating func add(_ origin: (run: UInt64, number: UInt64)?, _ message: NodeMessage?, _ now: Int64) {
        let id = StreamID(milliseconds: time(now, ahead))
        lastID = id > lastID ? id : StreamID(milliseconds: lastID.milliseconds, number: lastID.number + 1)
        entries.append(Entry(id: lastID, origin: origin, message: message))
    }

    /// A time of the simulation by a clock that is ahead, as in the ids of entries.
    private func time(_ now: Int64, _ ahead: Int64) -> UInt64 { UInt64(ManualClock.start + now + ahead) }
}
