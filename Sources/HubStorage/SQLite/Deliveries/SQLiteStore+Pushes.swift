import Foundation
import GRDB
import HubCore
internal import HubDefinitions
package import HubDelivery
import HubJSON
import Synchronization

extension SQLiteStore {
    /// All or nothing. An event with a known id fails the call.
    package func commit(
        _ batch: [EventCommit], answers: [AnswerRecord], scheduled: [ScheduledTake]
    ) async throws -> [EventRecord] {
        // Encoded on the caller's thread, because all callers share the writer's time.
        let entries = batch.map { entry in
            (
                event: entry.event, deliveries: WrittenPushes(entry.deliveries), fanout: entry.recipients.flatMap(RecipientColumns.init),
                once: entry.once
            )
        }
        let rows = entries.reduce(answers.count + scheduled.count) { $0 + 1 + $1.deliveries.records.count + ($1.fanout == nil ? 0 : 1) }
        return try await write(rows: rows) { [lists] db in
            try Self.take(scheduled, db)
            for answer in answers { try Self.insert(answer, db) }
            return try entries.map { entry in
                var event = entry.event
                if let once = entry.once { try Self.insert(once, app: event.app, db) }
                event.sequence = try Self.nextSequence(db, app: event.app, channel: event.channel)
                try Self.insert(event, db)
                try entry.deliveries.insert(db)
                if let fanout = entry.fanout { try Self.insert(fanout, of: event, lists: lists, db) }
                return event
            }
        }
    }

    /// `DeliveryStore.openDeliveries`: a walk along the index of open rows. Fails the unreadable ones.
    package func openDeliveries(limit: Int, isMeant: @escaping @Sendable (OpenPush) -> Bool) async throws -> [PushRecord] {
        let leases = leases.current
        let (open, unreadable) = try await read { db in
            var open: [PushRecord] = []
            var unreadable: [(PushRecord, StorageError)] = []
            var messages = MessageReader(db)
            let rows = try Row.fetchCursor(db.cachedStatement(sql: SQLiteStore.openDeliveriesSQL))
            while open.count < limit, let row = try rows.next() {
                var (delivery, problem) = try Self.delivery(row: row, &messages, leases)
                guard isMeant(OpenPush(delivery)) else { continue }
                // Nil after a replay, which empties the log and sets the attempts to 0.
                delivery.firstAttemptAt = (row["attempts_log"] as String?).flatMap(AttemptLog.firstStart)
                if let problem { unreadable.append((delivery, problem)) } else { open.append(delivery) }
            }
            return (open, unreadable)
        }
        if !unreadable.isEmpty {
            // Ends unreadable deliveries, so that the next start does not read them again.
            try await update(
                unreadable.map { delivery, _ in
                    var ended = delivery
                    ended.state = .failed
                    return ended
                })
            for (_, problem) in unreadable { onUnreadableRow(problem) }
        }
        return open
    }

    /// `DeliveryStore.lease`: one look-up per delivery, and one row for all of them.
    package func lease(_ deliveries: [PushRecord]) async throws -> [PushRecord] {
        if deliveries.isEmpty { return [] }
        // Kept outside the transaction: if it fails, these leases have to be forgotten.
        let begun = Mutex<[Int64]>([])
        do {
            return try await write(rows: deliveries.count) { [leases] db in
                let update = try PushUpdate(db)
                let leased = try deliveries.compactMap { delivery -> PushRecord? in
                    guard let row = try update.openRow(of: delivery) else { return nil }
                    var delivery = delivery
                    delivery.row = row
                    return delivery
                }
                if leased.isEmpty { return [] }
                try leases.begin(leased, db)
                begun.withLock { $0 = leased.compactMap(\.row) }
                return leased
            }
        } catch {
            leases.forget(begun.withLock { $0 })
            throw error
        }
    }

    /// A row that was pruned or has ended is skipped. A row's message and reason stay as committed.
    @discardableResult
    package func update(_ deliveries: [PushRecord]) async throws -> [PushRecord] {
        if deliveries.isEmpty { return [] }
        let ended = Mutex<[Int64: PushLeases.Lease]>([:])
        do {
            return try await write(rows: deliveries.count) { [leases] db in
                let update = try PushUpdate(db)
                var withdrawn: [PushRecord] = []
                let rows = try deliveries.compactMap { delivery in
                    let row = try update.end(delivery)
                    if delivery.state == .retry, let row, try update.isCancelled(row) {
                        var delivery = delivery
                        (delivery.state, delivery.outcome) = (.cancelled, PushUpdate.receipt)
                        withdrawn.append(delivery)
                    }
                    return row
                }
                let leases = try leases.end(rows, db)
                ended.withLock { $0 = leases }
                return withdrawn
            }
        } catch {
            leases.restore(ended.withLock { $0 })
            throw error
        }
    }

    /// An unreadable row comes without its message and with the problem as its outcome; an unknown state reads as `failed`.
    package func deliveries(event: String) async throws -> [PushRecord] {
        try await deliveries("delivery.event = ?", [event])
    }

    /// `DeliveryStore.deliveries`: a walk along the key.
    package func deliveries(event: String, user: String) async throws -> [PushRecord] {
        try await deliveries("delivery.event = ? AND delivery.user = ?", [event, user])
    }

    /// `DeliveryStore.dueDeliveries`: a walk along the key for each event.
    package func dueDeliveries(events: [String]) async throws -> [PushRecord] {
        var due: [PushRecord] = []
        for event in events {
            // A row that is leased still says due.
            due += try await deliveries("delivery.event = ? AND delivery.state = 'due'", [event]).filter { $0.state == .due }
        }
        return due
    }

    private func deliveries(_ condition: String, _ arguments: StatementArguments) async throws -> [PushRecord] {
        let leases = leases.current
        return try await read { db in
            var messages = MessageReader(db)
            return try Row.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT delivery.*, delivery.rowid AS row, event.sequence FROM delivery JOIN event ON event.id = delivery.event
                        WHERE \(condition) ORDER BY delivery.user, \(DeviceColumn.isClear), delivery.device
                        """), arguments: arguments
            ).map { try Self.delivery(row: $0, &messages, leases).delivery }
        }
    }

    /// `DeliveryStore.event`: one look-up by key.
    package func event(id: String) async throws -> EventRecord? {
        try await read { db in try Self.event(db, id: id) }
    }

    /// `DeliveryStore.prune`: at most `limit` events, with the rows that belong to them.
    package func prune(before cutoff: Int64, limit: Int) async throws -> Int {
        guard limit > 0 else { return 0 }
        // Counts as one row of the queue: no caller but this one waits for the deleted events.
        return try await write { db in
            let ended = try String.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT id FROM event
                        WHERE committed_at < ? AND NOT EXISTS (
                          SELECT 1 FROM delivery WHERE event = event.id AND \(SQLiteStore.isOpen))
                        AND NOT EXISTS (SELECT 1 FROM fanout WHERE event = event.id AND is_open = 1)
                        ORDER BY committed_at LIMIT ?
                        """), arguments: [cutoff, limit])
            let snapshots = try RecipientLists.numbers(ofEvents: ended, db)
            // Deliveries, texts and fan-outs are deleted by foreign key.
            let statement = try db.cachedStatement(sql: "DELETE FROM event WHERE id = ?")
            for id in ended {
                try statement.execute(arguments: [id])
                assert(db.changesCount == 1, "event \(id) was deleted from \(db.changesCount) rows")
            }
            try RecipientLists.deleteUnused(snapshots, db)
            return max(ended.count, try Self.pruneScheduled(before: cutoff, limit: limit, db))
        }
    }
}

extension SQLiteStore {
    /// Must match the partial index literally, or SQLite would not use it.
    static var isOpen: String {
        "(delivery.state = 'due' OR delivery.state = 'leased' OR delivery.state = 'retry' OR delivery.state = 'waiting')"
    }

    static var openDeliveriesSQL: String {
        """
        SELECT delivery.*, delivery.rowid AS row, event.sequence FROM delivery JOIN event ON event.id = delivery.event
        WHERE \(isOpen) ORDER BY delivery.due_at
        """
    }

    private static func nextSequence(_ db: Database, app: String, channel: String) throws -> Int64 {
        let next = try Int64.fetchOne(
            db.cachedStatement(
                sql: """
                    INSERT INTO channel (app, name, sequence) VALUES (?, ?, 1)
                    ON CONFLICT (app, name) DO UPDATE SET sequence = sequence + 1 RETURNING sequence
                    """), arguments: [app, channel])
        guard let next else { throw StorageError(.database, "SQLite gave no sequence") }
        assert(next > 0, "sequence \(next) of \(channel)")
        return next
    }

    private static func insert(_ event: EventRecord, _ db: Database) throws {
        try db.cachedStatement(
            sql: """
                INSERT INTO event (id, app, channel, sequence, name, data, policy, committed_at, expires_at)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                """
        ).execute(arguments: [
            event.id, event.app, event.channel, event.sequence, event.name, Data(event.data.utf8), event.policy.rawValue,
            event.committedAt, event.expiresAt,
        ])
        assert(db.changesCount == 1, "event \(event.id) was written into \(db.changesCount) rows")
    }

    static func event(_ db: Database, id: String) throws -> EventRecord? {
        try Row.fetchOne(db.cachedStatement(sql: "SELECT * FROM event WHERE id = ?"), arguments: [id]).map(event(row:))
    }

    static func event(row: Row) throws(StorageError) -> EventRecord {
        EventRecord(
            id: row["id"], app: row["app"], channel: row["channel"], sequence: row["sequence"], name: row["name"],
            data: String(decoding: row["data"] as Data, as: UTF8.self), policy: try decodeColumn(row, "policy", of: "event"),
            committedAt: row["committed_at"], expiresAt: row["expires_at"])
    }

    /// The row's delivery, and the error if part of it could not be read. The message takes the event's sequence, which was not known when
    /// the text was written.
    /// - Parameter leases: copied before the row was read.
    static func delivery(
        row: Row, _ messages: inout MessageReader, _ leases: [Int64: PushLeases.Lease] = [:]
    ) throws -> (delivery: PushRecord, problem: StorageError?) {
        let (device, purpose) = DeviceColumn.read(row["device"])
        var delivery = PushRecord(
            nid: row["nid"], event: row["event"], app: row["app"], user: row["user"], device: device, purpose: purpose,
            state: .failed, reason: row["reason"], dueAt: row["due_at"], attempts: row["attempts"], providerID: row["provider_id"],
            outcome: row["outcome"])
        do {
            delivery.state = try decodeColumn(row, "state", of: "delivery")
            if !leases.isEmpty {
                delivery.row = row["row"]
                delivery.apply(leases)
            }
            if let text = row["address"] as String? { delivery.address = try DirectAddressCoding.decode(text) }
            if let text = row["message"] as String? {
                delivery.message = try messages.message(text, number: row["message_number"], nid: delivery.nid)
                delivery.message?.sequence = row["sequence"]
            }
            return (delivery, nil)
        } catch let error as StorageError where error.code == .unreadableRow {
            delivery.message = nil
            delivery.outcome = "unreadable row"
            return (delivery, StorageError(error.code, "\(error.message) (event \(delivery.event), nid \(delivery.nid))"))
        }
    }
}
