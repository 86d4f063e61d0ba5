internal import HubCore
internal import HubScaleOut

/// All keys of a server. A copy is a value of its own.
package struct RedisMemory: Sendable {
    /// Type of a key's value, as TYPE answers it.
    package enum Kind: String, Sendable {
        case string, hash, set, zset, stream
    }

    /// The value of a key: one field has it, by the kind.
    struct Entry {
        let kind: Kind
        var string: [UInt8] = []
        /// A hash, or a set, whose values are empty.
        var table = OrderedTable()
        var sorted = SortedTable()
        var stream = EntryTable()

        init(_ kind: Kind) { self.kind = kind }

        /// Redis keeps no such key.
        var isEmpty: Bool {
            switch kind {
            case .hash, .set: table.count == 0
            case .zset: sorted.count == 0
            case .string, .stream: false
            }
        }
    }

    private var entries: [[UInt8]: Entry] = [:]
    /// When keys expire that ever do, in milliseconds since 1970.
    private var deadlines: [[UInt8]: Int64] = [:]

    /// An empty one.
    package init() {}

    /// All keys with their kinds, sorted.
    package var keys: [(name: [UInt8], kind: Kind)] {
        entries.map { ($0.key, $0.value.kind) }.sorted { $0.name.lexicographicallyPrecedes($1.name) }
    }

    // MARK: Keys of any kind

    /// Removes what has expired. Within a script nothing does.
    mutating func expire(at now: Int64) {
        guard deadlines.contains(where: { $0.value <= now }) else { return }
        for key in deadlines.filter({ $0.value <= now }).keys { remove(key) }
    }

    /// - Returns: whether the key was there.
    @discardableResult
    mutating func remove(_ key: [UInt8]) -> Bool {
        deadlines[key] = nil
        return entries.removeValue(forKey: key) != nil
    }

    func contains(_ key: [UInt8]) -> Bool { entries[key] != nil }

    /// Milliseconds until the key expires; -1: never; -2: there is no such key.
    func left(_ key: [UInt8], now: Int64) -> Int64 { contains(key) ? deadlines[key].map { max(0, $0 - now) } ?? -1 : -2 }

    /// - Returns: whether the key is there.
    mutating func setDeadline(_ key: [UInt8], _ deadline: Int64?, now: Int64) -> Bool {
        guard contains(key) else { return false }
        deadlines[key] = deadline
        if let deadline, deadline <= now { remove(key) }
        return true
    }

    /// Puts a string in place of whatever the key has.
    mutating func setString(_ key: [UInt8], _ value: [UInt8]) {
        remove(key)
        var entry = Entry(.string)
        entry.string = value
        entries[key] = entry
    }

    /// - Throws: where the key has a value of another kind.
    func find(_ key: [UInt8], _ kind: Kind) throws(RedisFailure) -> Entry? {
        guard let entry = entries[key] else { return nil }
        guard entry.kind == kind else { throw Self.wrongKind }
        return entry
    }

    /// Changes a value, which may be a new one, in place.
    mutating func change<Result>(
        _ key: [UInt8], _ kind: Kind, _ body: (inout Entry) throws(RedisFailure) -> Result
    ) throws(RedisFailure) -> Result {
        if entries[key] == nil { entries[key] = Entry(kind) }
        let index = entries.index(forKey: key)!
        guard entries.values[index].kind == kind else { throw Self.wrongKind }
        let result = try body(&entries.values[index])
        if entries.values[index].isEmpty { remove(key) }
        return result
    }

    private static let wrongKind = RedisFailure.refused(
        code: "WRONGTYPE", message: "Operation against a key holding the wrong kind of value")
}
