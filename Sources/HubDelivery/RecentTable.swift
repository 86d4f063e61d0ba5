/// Values by key, of which the ones that were touched longest ago are forgotten: when there are too many, and when they are old.
package struct RecentTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct Entry {
        var value: Value
        var ticket: UInt64
    }

    private let countMax: Int
    private let ageMax: Int64
    private var entries: [Key: Entry] = [:]
    private var queue: [(key: Key, ticket: UInt64, at: Int64)] = []
    private var queueHead = 0
    private var lastTicket: UInt64 = 0

    /// - Parameter ageMax: milliseconds.
    package init(countMax: Int, ageMax: Int64) {
        precondition(countMax > 0 && ageMax > 0, "countMax \(countMax), ageMax \(ageMax)")
        self.countMax = countMax
        self.ageMax = ageMax
    }

    /// Of those that are remembered.
    package var count: Int { entries.count }

    /// Nil: never set, or forgotten.
    package subscript(key: Key) -> Value? { entries[key]?.value }

    /// Sets a value and makes it the most recent one. Costs a constant on average.
    /// - Parameter now: milliseconds on the clock of `ageMax`.
    package mutating func set(_ value: Value, for key: Key, now: Int64) {
        lastTicket += 1
        entries[key] = Entry(value: value, ticket: lastTicket)
        queue.append((key, lastTicket, now))
        while queueHead < queue.count, entries.count > countMax || queue[queueHead].at <= now - ageMax || !isCurrent(queue[queueHead]) {
            if isCurrent(queue[queueHead]) { entries[queue[queueHead].key] = nil }
            queueHead += 1
        }
        // Touching one key again and again leaves outdated entries behind; they go when they outnumber the rest.
        if queue.count > 2 * entries.count + 1024 {
            queue = queue[queueHead...].filter { isCurrent($0) }
            queueHead = 0
        }
    }

    private func isCurrent(_ entry: (key: Key, ticket: UInt64, at: Int64)) -> Bool { entries[entry.key]?.ticket == entry.ticket }
}
