import HubDelivery

/// The recipient lists of one read, each looked up once, and the errors of unreadable rows.
struct Lists {
    private let cache: SnapshotCache
    private let read: (Int64) throws -> RecipientSnapshot?
    /// Number of lists that were not in memory.
    private(set) var readCount = 0
    var problems: [StorageError] = []
    private var met: [Int64: SnapshotCache.Entry?] = [:]

    /// - Parameter read: reads a list from the store; nil if it cannot be read or does not match its key.
    init(cache: SnapshotCache, read: @escaping (Int64) throws -> RecipientSnapshot?) {
        self.cache = cache
        self.read = read
    }

    /// Nil if the list cannot be read.
    mutating func list(_ number: Int64) throws -> SnapshotCache.Entry? {
        if let known = met[number] { return known }
        var entry = cache.entry(number)
        if entry == nil {
            readCount += 1
            var problem: StorageError?
            entry = try cache.load(number, problem: &problem, read: read)
            if let problem { problems.append(problem) }
        }
        met[number] = .some(entry)
        return entry
    }

    /// The list of one event; nil also if its length differs from the event's count.
    mutating func list(_ number: Int64, ofEvent event: String, count: Int) throws -> SnapshotCache.Entry? {
        guard let list = try list(number) else { return nil }
        if list.users.count == count { return list }
        problems.append(
            StorageError(.unreadableRow, "a list of recipients does not fit its event; who was told is unknown (event \(event))"))
        return nil
    }

    /// An event; nil if it cannot be read.
    mutating func event(_ read: () throws(StorageError) -> EventRecord) -> EventRecord? {
        do throws(StorageError) {
            return try read()
        } catch {
            problems.append(error)
            return nil
        }
    }

    /// An event whose recipients are not all told. Unreadable notes and bits count as unknown.
    /// - Parameters:
    ///   - position: of its row among all rows.
    ///   - notes: in `NoteCoding`.
    mutating func open(
        _ position: Int64, _ event: EventRecord, users: [String], _ bits: RecipientBits, notes: [UInt8]
    ) -> OpenRecipients {
        let decoded = NoteCoding.decode(notes, count: bits.count)
        if bits.isUnreadable || decoded == nil { problems.append(RecipientBits.unreadable(event: event.id)) }
        return OpenRecipients(
            position: position, event: event, users: users,
            notes: decoded ?? Array(repeating: RecipientBits.unknownNote, count: bits.count), confirmed: bits.confirmed, pushed: bits.pushed
        )
    }
}
