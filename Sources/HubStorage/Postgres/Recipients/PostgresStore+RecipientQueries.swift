internal import HubCore
package import HubDelivery

extension PostgresStore {
    /// `RecipientStore.openFanouts`: a walk along the indexes of open rows. Closes the unreadable ones.
    package func openFanouts(after position: Int64, limit: Int) async throws -> [OpenRecipients] {
        guard limit > 0 else { return [] }
        let (open, lost, problems) = try await read(within: PostgresMigrator.durationMax) { [snapshots, known, time] tx in
            var lists = Lists(cache: snapshots, tx: tx)
            var open: [OpenRecipients] = []
            var lost: [RecipientSettlement] = []
            let rows = try tx.query(
                """
                SELECT \(KnownBits.columns), f.snapshot, f.notes, \(EventReader.columns)
                FROM tandem.fanout f JOIN tandem.event e ON e.id = f.event AND e.day = f.day
                WHERE f.is_open AND f.number > $1 AND f.day = ANY(ARRAY(SELECT day FROM tandem.day WHERE NOT is_ended))
                  AND NOT EXISTS (SELECT FROM tandem.settlement s WHERE s.day = f.day AND s.fanout = f.number AND s.is_closed)
                ORDER BY f.number LIMIT $2
                """, [.int(position), .int(limit)])
            let told = try known.read(rows, tx, now: time.monotonicNanoseconds)
            for index in 0..<rows.count {
                let row = rows[index]
                let id = row.text("id")
                do {
                    let event = try EventReader.event(row)
                    guard let bits = told[row.int("number")] else { continue }
                    guard let list = try lists.list(row.int("snapshot"), ofEvent: id, count: bits.count) else {
                        lost.append(RecipientSettlement(event: id, isClosed: true))
                        continue
                    }
                    open.append(lists.open(row.int("number"), event, users: list.users, bits, notes: row.bytes("notes")))
                } catch let error as StorageError {
                    lists.problems.append(error)
                    lost.append(RecipientSettlement(event: id, isClosed: true))
                }
            }
            return (open, lost, lists.problems)
        }
        // Unreadable rows end, so that the next start does not read them again.
        if !lost.isEmpty { try await settle(lost) }
        for problem in problems { onUnreadableRow(problem) }
        return open
    }

    /// `RecipientStore.missed`: reads at most `SQLiteStore.missedCandidatesMax` rows of the channel.
    package func missed(app: String, channel: String, users: [String], now: Int64, limit: Int) async throws -> [[MissedEvent]] {
        guard limit > 0, !users.isEmpty else { return users.map { _ in [] } }
        return try await reading { [known, time] tx, lists in
            // Most events share one list.
            var places: [Int64: [(index: Int, place: Int)]] = [:]
            var candidates: [Int64: (bits: RecipientBits, people: [(index: Int, place: Int)])] = [:]
            let rows = try tx.query(
                """
                SELECT \(KnownBits.columns), f.snapshot FROM tandem.fanout f
                WHERE f.app = $1 AND f.channel = $2 AND f.expires_at > $3 ORDER BY f.expires_at DESC LIMIT $4
                """, [.text(app), .text(channel), .int(now), .int(SQLiteStore.missedCandidatesMax)])
            let told = try known.read(rows, tx, now: time.monotonicNanoseconds)
            for index in 0..<rows.count {
                let snapshot = rows[index].int("snapshot")
                if places[snapshot] == nil {
                    let list = try lists.list(snapshot)
                    places[snapshot] = users.indices.compactMap { index in list?.place(of: users[index]).map { (index, $0) } }
                }
                guard let known = places[snapshot], !known.isEmpty else { continue }
                guard let bits = told[rows[index].int("number")] else { continue }
                let people = known.filter { !bits.confirmed.contains($0.place) }
                if !people.isEmpty { candidates[rows[index].int("number")] = (bits, people) }
            }
            if candidates.isEmpty { return users.map { _ in [] } }
            let events = try tx.query(
                """
                SELECT f.number, f.notes, \(EventReader.columns)
                FROM tandem.fanout f JOIN tandem.event e ON e.id = f.event AND e.day = f.day
                WHERE f.number = ANY($1) ORDER BY f.number
                """, [.ints(candidates.keys.sorted())])
            var missed = users.map { _ in [MissedEvent]() }
            for index in 0..<events.count {
                let row = events[index]
                guard let candidate = candidates[row.int("number")] else { continue }
                let people = candidate.people.filter { missed[$0.index].count < limit }
                guard !people.isEmpty, let event = lists.event({ () throws(StorageError) in try EventReader.event(row) }) else { continue }
                let notes = row.bytes("notes")
                for (index, place) in people {
                    let note = NoteCoding.note(place, in: notes, count: candidate.bits.count) ?? RecipientBits.unknownNote
                    guard note.choice != .actor else { continue }
                    missed[index].append(
                        MissedEvent(event: event, recipient: place, note: note, isPushed: candidate.bits.pushed.contains(place)))
                }
            }
            assert(missed.allSatisfy { $0.count <= limit }, "somebody missed more than \(limit) events")
            return missed
        }
    }

    /// `RecipientStore.history`: a walk along the channel's sequences.
    package func history(app: String, channel: String, after sequence: Int64, limit: Int) async throws -> [EventRecord] {
        guard limit > 0 else { return [] }
        return try await reading { tx, lists in
            try tx.query(
                """
                SELECT \(EventReader.columns) FROM tandem.event e
                WHERE e.app = $1 AND e.channel = $2 AND e.sequence > $3 ORDER BY e.sequence LIMIT $4
                """, [.text(app), .text(channel), .int(sequence), .int(limit)]
            ).compactMap { row in lists.event { () throws(StorageError) in try EventReader.event(row) } }
        }
    }

    /// `RecipientStore.events`: events with a short list by index, and a bounded number of events with a long one by a look into it.
    package func events(app: String, user: String, after position: Int64, limit: Int) async throws -> UserEvents {
        let limit = min(limit, SQLiteStore.pageMax)
        guard limit > 0 else { return UserEvents(entries: [], position: position, isMore: true) }
        return try await reading { tx, lists in
            var found = try tx.query(
                """
                SELECT f.number FROM tandem.snapshot_user u JOIN tandem.fanout f ON f.snapshot = u.snapshot AND f.day = u.day
                WHERE u.user_id = $1 AND f.app = $2 AND f.number > $3 ORDER BY f.number LIMIT $4
                """, [.text(user), .text(app), .int(position), .int(limit + 1)]
            ).map { $0.int("number") }
            var isCut = found.count > limit
            // Events after `end` have not been read.
            var end = isCut ? found.last ?? .max : .max

            let large = try tx.query(
                """
                SELECT number, snapshot FROM tandem.fanout WHERE app = $1 AND is_large AND number > $2 AND number <= $3
                ORDER BY number LIMIT $4
                """, [.text(app), .int(position), .int(end), .int(SQLiteStore.largeCandidatesMax + 1)])
            var matches = 0
            for index in 0..<large.count {
                let number = large[index].int("number")
                guard index < SQLiteStore.largeCandidatesMax, matches <= limit, lists.readCount < SQLiteStore.listsReadMax else {
                    (end, isCut) = (number - 1, true)
                    break
                }
                if try lists.list(large[index].int("snapshot"))?.place(of: user) != nil {
                    found.append(number)
                    matches += 1
                }
            }
            found = found.filter { $0 <= end }.sorted()
            if found.count > limit {
                found = Array(found.prefix(limit))
                (end, isCut) = (found.last ?? position, true)
            }
            if !isCut {
                end = max(position, try tx.query("SELECT max(number) AS number FROM tandem.fanout").first?.intOrNil("number") ?? 0)
            }
            assert(end >= position, "the position goes back from \(position) to \(end)")
            let rows = try tx.query(
                """
                SELECT f.number, \(EventReader.columns) FROM tandem.fanout f JOIN tandem.event e ON e.id = f.event AND e.day = f.day
                WHERE f.number = ANY($1) ORDER BY f.number
                """, [.ints(found)])
            let entries = rows.compactMap { row in
                lists.event { () throws(StorageError) in try EventReader.event(row) }
                    .map { UserEvents.Entry(position: row.int("number"), event: $0) }
            }
            return UserEvents(entries: entries, position: end, isMore: isCut)
        }
    }

    /// Runs `work` in parallel with the writer, then reports the rows that could not be read.
    func reading<Value: Sendable>(_ work: @escaping @Sendable (PostgresTransaction, inout Lists) throws -> Value) async throws -> Value {
        let (value, problems) = try await read { [snapshots] tx in
            var lists = Lists(cache: snapshots, tx: tx)
            let value = try work(tx, &lists)
            return (value, lists.problems)
        }
        for problem in problems { onUnreadableRow(problem) }
        return value
    }
}

extension Lists {
    /// The lists of one read of this database.
    init(cache: SnapshotCache, tx: PostgresTransaction) {
        self.init(cache: cache) { try PostgresLists.read($0, tx) }
    }
}

/// Reads rows of `tandem.event e`.
enum EventReader {
    static let columns = "e.id, e.app, e.channel, e.sequence, e.name, e.data, e.policy, e.committed_at AS event_committed_at, e.expires_at"

    static func event(_ row: PostgresRow) throws(StorageError) -> EventRecord {
        EventRecord(
            id: row.text("id"), app: row.text("app"), channel: row.text("channel"), sequence: row.int("sequence"), name: row.text("name"),
            data: String(decoding: row.bytes("data"), as: UTF8.self), policy: try row.value("policy", of: "event"),
            committedAt: row.int("event_committed_at"), expiresAt: row.int("expires_at"))
    }
}
