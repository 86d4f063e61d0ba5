import Foundation
import GRDB
package import HubDelivery

extension SQLiteStore {
    /// Maximum of fan-outs of one channel that `missed` reads, latest expiry first.
    static let missedCandidatesMax = 1_000
    /// Maximum of events with a long list that one call of `events` reads.
    static let largeCandidatesMax = 5_000
    /// Maximum of long lists that one call of `events` reads from the database.
    static let listsReadMax = 32
    /// Maximum of events per page.
    static let pageMax = 1_000

    /// `RecipientStore.openFanouts`: a walk along the index of open rows. Closes the unreadable ones.
    package func openFanouts(after position: Int64, limit: Int) async throws -> [OpenRecipients] {
        guard limit > 0 else { return [] }
        let (open, lost, problems) = try await read { db in
            var lists = Lists(cache: snapshots, db: db)
            var open: [OpenRecipients] = []
            var lost: [RecipientSettlement] = []
            let rows = try Row.fetchCursor(db.cachedStatement(sql: SQLiteStore.openFanoutsSQL), arguments: [position])
            while open.count < limit, let row = try rows.next() {
                let id: String = row["event"]
                do {
                    let event = try Self.event(row: row)
                    let bits = RecipientBits(row: row)
                    guard let list = try lists.list(row["snapshot"], ofEvent: id, count: bits.count) else {
                        lost.append(RecipientSettlement(event: id, isClosed: true))
                        continue
                    }
                    open.append(lists.open(row["number"], event, users: list.users, bits, notes: [UInt8](row["notes"] as Data)))
                } catch let error as StorageError {
                    lists.problems.append(error)
                    lost.append(RecipientSettlement(event: id, isClosed: true))
                }
            }
            return (open, lost, lists.problems)
        }
        // Ends unreadable fan-outs, so that the next start does not read them again.
        if !lost.isEmpty { try await settle(lost) }
        for problem in problems { onUnreadableRow(problem) }
        return open
    }

    /// `RecipientStore.missed`: reads at most `missedCandidatesMax` rows of the channel.
    package func missed(app: String, channel: String, users: [String], now: Int64, limit: Int) async throws -> [[MissedEvent]] {
        guard limit > 0, !users.isEmpty else { return users.map { _ in [] } }
        return try await reading { db, lists in
            // Most events share one list.
            var places: [Int64: [(index: Int, place: Int)]] = [:]
            var candidates: [(number: Int64, people: [(index: Int, place: Int)])] = []
            let rows = try Row.fetchCursor(
                db.cachedStatement(sql: SQLiteStore.missedSQL), arguments: [app, channel, now, Self.missedCandidatesMax])
            while let row = try rows.next() {
                let snapshot: Int64 = row["snapshot"]
                if places[snapshot] == nil {
                    let list = try lists.list(snapshot)
                    places[snapshot] = users.indices.compactMap { index in list?.place(of: users[index]).map { (index, $0) } }
                }
                guard let known = places[snapshot], !known.isEmpty else { continue }
                let confirmed = PlaceSet(bytes: [UInt8](row["confirmed"] as Data), count: RecipientBits.count(row))
                let people = known.filter { confirmed?.contains($0.place) != true }
                if !people.isEmpty { candidates.append((row["number"], people)) }
            }
            var missed = users.map { _ in [MissedEvent]() }
            let statement = try db.cachedStatement(
                sql: "SELECT fanout.count, pushed, notes, event.* FROM fanout JOIN event ON event.id = fanout.event WHERE number = ?")
            for candidate in candidates.sorted(by: { $0.number < $1.number }) {
                let people = candidate.people.filter { missed[$0.index].count < limit }
                guard !people.isEmpty, let row = try Row.fetchOne(statement, arguments: [candidate.number]), let event = lists.event(row)
                else { continue }
                let count = RecipientBits.count(row)
                let notes = [UInt8](row["notes"] as Data)
                let pushed = PlaceSet(bytes: [UInt8](row["pushed"] as Data), count: count)
                for (index, place) in people {
                    let note = NoteCoding.note(place, in: notes, count: count) ?? RecipientBits.unknownNote
                    guard note.choice != .actor else { continue }
                    missed[index].append(
                        MissedEvent(event: event, recipient: place, note: note, isPushed: pushed?.contains(place) ?? false))
                }
            }
            assert(missed.allSatisfy { $0.count <= limit }, "somebody missed more than \(limit) events")
            return missed
        }
    }

    /// `RecipientStore.history`: a walk along the channel's sequences.
    package func history(app: String, channel: String, after sequence: Int64, limit: Int) async throws -> [EventRecord] {
        guard limit > 0 else { return [] }
        return try await reading { db, lists in
            try Row.fetchAll(
                db.cachedStatement(
                    sql: "SELECT * FROM event WHERE app = ? AND channel = ? AND sequence > ? ORDER BY sequence LIMIT ?"),
                arguments: [app, channel, sequence, limit]
            ).compactMap { lists.event($0) }
        }
    }

    /// Cost per event: one index entry and one look-up in a list in memory. Reads all of the user's events with a short list after the
    /// position, and a bounded number of events with a long list.
    package func events(app: String, user: String, after position: Int64, limit: Int) async throws -> UserEvents {
        let limit = min(limit, Self.pageMax)
        guard limit > 0 else { return UserEvents(entries: [], position: position, isMore: true) }
        return try await reading { db, lists in
            var found = try Row.fetchAll(
                db.cachedStatement(sql: SQLiteStore.ownEventsSQL), arguments: [user, app, position, limit + 1]
            ).map { (number: $0["number"] as Int64, event: $0["event"] as String) }
            var isCut = found.count > limit
            // Events after `end` have not been read.
            var end = found.last?.number ?? .max
            if !isCut { end = .max }

            var (looked, matches) = (0, 0)
            let rows = try Row.fetchCursor(db.cachedStatement(sql: SQLiteStore.largeEventsSQL), arguments: [app, position, end])
            while let row = try rows.next() {
                let number: Int64 = row["number"]
                guard looked < Self.largeCandidatesMax, matches <= limit, lists.readCount < Self.listsReadMax else {
                    (end, isCut) = (number - 1, true)
                    break
                }
                looked += 1
                if try lists.list(row["snapshot"])?.place(of: user) != nil {
                    found.append((number, row["event"]))
                    matches += 1
                }
            }
            found = found.filter { $0.number <= end }.sorted { $0.number < $1.number }
            if found.count > limit {
                found = Array(found.prefix(limit))
                (end, isCut) = (found.last?.number ?? position, true)
            }
            if !isCut {
                end = max(position, try Int64.fetchOne(db.cachedStatement(sql: "SELECT MAX(number) FROM fanout")) ?? 0)
            }
            assert(end >= position, "the position goes back from \(position) to \(end)")
            assert(
                found.count <= limit && found.allSatisfy { $0.number > position && $0.number <= end },
                "\(found.count) events, at most \(limit), from \(position) to \(end)")
            let statement = try db.cachedStatement(sql: "SELECT * FROM event WHERE id = ?")
            let entries = try found.compactMap { found in
                try Row.fetchOne(statement, arguments: [found.event]).flatMap { lists.event($0) }
                    .map { UserEvents.Entry(position: found.number, event: $0) }
            }
            return UserEvents(entries: entries, position: end, isMore: isCut)
        }
    }

    /// Runs `work` in parallel with the writer, then reports the rows that could not be read.
    func reading<Value: Sendable>(_ work: @Sendable (Database, inout Lists) throws -> Value) async throws -> Value {
        let (value, problems) = try await read { db in
            var lists = Lists(cache: snapshots, db: db)
            return (try work(db, &lists), lists.problems)
        }
        for problem in problems { onUnreadableRow(problem) }
        return value
    }
}

extension SQLiteStore {
    static var openFanoutsSQL: String {
        """
        SELECT fanout.*, event.id, event.sequence, event.name, event.data, event.policy
        FROM fanout JOIN event ON event.id = fanout.event WHERE is_open = 1 AND number > ? ORDER BY number
        """
    }

    static var missedSQL: String {
        """
        SELECT number, snapshot, count, confirmed FROM fanout WHERE app = ? AND channel = ? AND expires_at > ?
        ORDER BY expires_at DESC LIMIT ?
        """
    }

    /// CROSS JOIN and the plus sign keep SQLite from walking all of the app's events: the planner cannot know how few are the user's.
    static var ownEventsSQL: String {
        """
        SELECT fanout.number, fanout.event FROM snapshot_user CROSS JOIN fanout ON fanout.snapshot = snapshot_user.snapshot
        WHERE snapshot_user.user = ? AND +fanout.app = ? AND fanout.number > ? ORDER BY fanout.number LIMIT ?
        """
    }

    static var largeEventsSQL: String {
        "SELECT number, event, snapshot FROM fanout WHERE app = ? AND is_large = 1 AND number > ? AND number <= ? ORDER BY number"
    }
}

extension Lists {
    /// The lists of one read of this database.
    init(cache: SnapshotCache, db: Database) {
        self.init(cache: cache) { try RecipientLists.read($0, db) }
    }

    /// The event in the row's event columns; nil if it cannot be read.
    mutating func event(_ row: Row) -> EventRecord? {
        event { () throws(StorageError) in try SQLiteStore.event(row: row) }
    }
}
