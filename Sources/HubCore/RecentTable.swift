/// Values by key. The ones set longest ago are dropped when there are too many, or when they are too old.
///
/// Inlinable: otherwise other modules' code would not be specialised for the types of its tables, and would look them up at each step.
package struct RecentTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline
    struct Entry {
        @usableFromInline var value: Value
        @usableFromInline var ticket: UInt64

        @usableFromInline
        init(value: Value, ticket: UInt64) {
            (self.value, self.ticket) = (value, ticket)
        }
    }

    @usableFromInline let countMax: Int
    @usableFromInline let ageMax: Int64
    @usableFromInline var entries: [Key: Entry] = [:]
    @usableFromInline var queue: [(key: Key, ticket: UInt64, at: Int64)] = []
    @usableFromInline var queueHead = 0
    @usableFromInline var lastTicket: UInt64 = 0

    /// - Parameter ageMax: milliseconds for which a value is kept.
    @inlinable
    package init(countMax: Int, ageMax: Int64) {
        precondition(countMax > 0 && ageMax > 0, "countMax \(countMax), ageMax \(ageMax)")
        self.countMax = countMax
        self.ageMax = ageMax
    }

    /// Keys of the values kept.
    package var keys: [Key] { Array(entries.keys) }

    /// Number of values kept.
    @inlinable package var count: Int { entries.count }

    /// The value; nil if never set or dropped.
    @inlinable package subscript(key: Key) -> Value? { entries[key]?.value }

    /// Forgets a value.
    @inlinable
    package mutating func remove(_ key: Key) { entries[key] = nil }

    /// Sets a value and makes it the most recent one, in amortised O(1).
    /// - Parameter now: milliseconds on the clock of `ageMax`.
    @inlinable
    package mutating func set(_ value: Value, for key: Key, now: Int64) {
        lastTicket += 1
        entries[key] = Entry(value: value, ticket: lastTicket)
        queue.append((key, lastTicket, now))
        while queueHead < queue.count, entries.count > countMax || queue[queueHead].at <= now - ageMax {
            let oldest = queue[queueHead]
            // If the key was set again, a later entry of the queue stands for it.
            if let place = entries.index(forKey: oldest.key), entries.values[place].ticket == oldest.ticket { entries.remove(at: place) }
            queueHead += 1
        }
        // Setting one key repeatedly leaves outdated entries, which are removed once they outnumber the rest.
        if queue.count > 2 * entries.count + 1024 {
            queue = queue[queueHead...].filter { entries[$0.key]?.ticket == $0.ticket }
            queueHead = 0
        }
    }
}
