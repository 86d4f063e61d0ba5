/// Entries that a node has for one Redis: each is kept until the node has read it back, and for five seconds more.
///
/// Redis may lose entries that it has answered for: a replica that takes over lacks the last ones. So entries are kept. In a new epoch they
/// are appended again under their old numbers. Readers drop numbers that they know.
package struct SentEntries: Sendable {
    /// One entry, by its number among those of this node.
    package struct Entry: Sendable, Equatable {
        package let number: UInt64
        package var payload: [UInt8]
        fileprivate let sentAt: UInt64
        fileprivate var readAt: UInt64?
    }

    /// Nanoseconds for which an entry is kept after it was read back.
    package static let keptFor: UInt64 = 5_000_000_000
    /// Bytes of all entries, with `entryBytes` for each.
    package static let bytesMax = 64 << 20
    /// The part of these that entries may take which are given up if they wait for long.
    package static let passingBytesMax = bytesMax / 4 * 3
    package static let entryBytes = 64

    /// From the oldest on, without a gap in the numbers.
    private var entries: [Entry] = []
    private var head = 0
    private(set) var byteCount = 0
    /// Highest number that Redis has answered for in this epoch.
    package private(set) var answered: UInt64 = 0
    private var lastNumber: UInt64 = 0

    package init() {}

    package var count: Int { entries.count - head }
    /// Whether entries wait to be answered for.
    package var hasUnanswered: Bool { answered < lastNumber }

    /// Adds an entry.
    /// - Parameters:
    ///   - now: nanoseconds, as everywhere here.
    ///   - isPassing: it is given up if it waits for long.
    /// - Returns: its number; nil: too much is kept already.
    package mutating func append(_ payload: [UInt8], now: UInt64, isPassing: Bool = false) -> UInt64? {
        guard byteCount + payload.count + Self.entryBytes <= (isPassing ? Self.passingBytesMax : Self.bytesMax) else { return nil }
        lastNumber += 1
        byteCount += payload.count + Self.entryBytes
        entries.append(Entry(number: lastNumber, payload: payload, sentAt: now))
        return lastNumber
    }

    /// The oldest entries without an answer, at most so many, and so many bytes but for the first.
    package func unanswered(most: Int, bytes: Int) -> [Entry] {
        var (chosen, left) = ([Entry](), bytes)
        var index = place(of: answered + 1)
        while index < entries.count, chosen.count < most, chosen.isEmpty || entries[index].payload.count <= left {
            left -= entries[index].payload.count
            chosen.append(entries[index])
            index += 1
        }
        return chosen
    }

    /// Redis has answered for all entries up to this number.
    package mutating func answered(through number: UInt64) {
        assert(number <= lastNumber, "an answer for \(number) of \(lastNumber) entries")
        answered = max(answered, number)
    }

    /// Gives an entry up: what is not appended yet becomes empty, so that the numbers stay without a gap.
    package mutating func giveUp(_ number: UInt64) {
        let place = place(of: number)
        guard entries.indices.contains(place), place >= head else { return }
        byteCount -= entries[place].payload.count
        entries[place].payload = []
    }

    /// The node has read its own entry.
    /// - Returns: nanoseconds since it was added; nil: it was read before.
    @discardableResult
    package mutating func readBack(_ number: UInt64, now: UInt64) -> UInt64? {
        let place = place(of: number)
        guard entries.indices.contains(place), place >= head else { return nil }
        answered(through: number)
        guard entries[place].readAt == nil else { return nil }
        entries[place].readAt = now
        return now - min(now, entries[place].sentAt)
    }

    /// Redis has a new epoch and may have lost anything: all that is kept has to be appended again.
    package mutating func epochChanged() {
        answered = head < entries.count ? entries[head].number - 1 : lastNumber
        for place in head..<entries.count { entries[place].readAt = nil }
    }

    /// Drops what needs no more keeping.
    package mutating func drop(now: UInt64) {
        while head < entries.count, let readAt = entries[head].readAt, now >= readAt + Self.keptFor {
            byteCount -= entries[head].payload.count + Self.entryBytes
            entries[head].payload = []
            head += 1
        }
        if head > 1024, head > entries.count / 2 {
            entries.removeFirst(head)
            head = 0
        }
        assert(byteCount >= 0 && (head < entries.count || byteCount == 0), "\(byteCount) bytes of \(count) entries")
    }

    private func place(of number: UInt64) -> Int {
        guard let first = entries.first?.number, number >= first else { return head }
        return Int(clamping: number - first)
    }
}
