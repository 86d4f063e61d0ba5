import Foundation
import GRDB
import HubDefinitions
package import HubDelivery

extension SQLiteStore {
    /// `RecipientStore.settle`: rewrites one row per settlement that changes it.
    package func settle(_ settlements: [RecipientSettlement]) async throws {
        _ = try await escalate([], settlements)
    }

    /// `RecipientStore.escalate`: one row per delivery and settlement, all in one transaction.
    package func escalate(_ deliveries: [PushRecord], _ settlements: [RecipientSettlement]) async throws -> [PushRecord] {
        if deliveries.isEmpty && settlements.isEmpty { return [] }
        let written = WrittenPushes(deliveries)
        let (inserted, problems) = try await write(rows: deliveries.count + settlements.count) { db in
            let inserted = try written.insert(ignoringKnown: true, db)
            return (inserted, try settlements.compactMap { try Self.settle($0, db) })
        }
        for problem in problems { onUnreadableRow(problem) }
        return inserted
    }

    /// `RecipientStore.cancelDeliveries`: the open rows of each user, by key. Marks those under way instead.
    ///
    /// A push leased by an earlier process is not under way any more. It waits to be sent again, and ends.
    package func cancelDeliveries(event: String, _ cancellations: [PushCancellation]) async throws -> [PushRecord] {
        if cancellations.isEmpty { return [] }
        return try await write(rows: cancellations.count) { [leases] db in
            let find = try db.cachedStatement(
                sql: """
                    SELECT rowid FROM delivery
                    WHERE event = ? AND user = ? AND device = ifnull(?, device) AND NOT \(DeviceColumn.isClear)
                      AND \(SQLiteStore.isOpen)
                      AND (? OR reason NOT IN ('\(Policy.both.rawValue)', '\(Policy.pushOnly.rawValue)'))
                    """)
            let cancel = try db.cachedStatement(
                sql: """
                    UPDATE delivery SET state = 'cancelled', outcome = '\(PushUpdate.receipt)' WHERE rowid = ?
                    RETURNING event, user, device, nid, app, state, reason, due_at, attempts, NULL AS message, provider_id, outcome
                    """)
            // The attempt under way goes on, but is not retried.
            let mark = try db.cachedStatement(sql: "UPDATE delivery SET outcome = '\(PushUpdate.receipt)' WHERE rowid = ?")
            let leased = leases.current
            var messages = MessageReader(db)
            return try cancellations.flatMap { wanted in
                let rows = try Row.fetchAll(find, arguments: [event, wanted.user, wanted.device, wanted.isOfNotification])
                return try rows.compactMap { row -> PushRecord? in
                    let number: Int64 = row["rowid"]
                    if leased[number] != nil {
                        try mark.execute(arguments: [number])
                        return nil
                    }
                    return try Row.fetchOne(cancel, arguments: [number]).map { try Self.delivery(row: $0, &messages).delivery }
                }
            }
        }
    }

    // MARK: Inside a transaction

    static func insert(_ fanout: RecipientColumns, of event: EventRecord, lists: RecipientLists, _ db: Database) throws {
        try db.cachedStatement(
            sql: """
                INSERT INTO fanout
                  (event, app, channel, committed_at, expires_at, snapshot, count, is_large, is_open, confirmed, pushed, received, notes)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, x'', ?, x'', ?)
                """
        ).execute(arguments: [
            event.id, event.app, event.channel, event.committedAt, event.expiresAt, try lists.number(of: fanout.snapshot, db),
            fanout.snapshot.users.count, fanout.isLarge, fanout.isOpen, fanout.pushed.stored, Data(fanout.notes),
        ])
        assert(db.changesCount == 1, "recipients of \(event.id) were written into \(db.changesCount) rows")
    }

    /// - Returns: the error if part of the row was unreadable and was reset.
    private static func settle(_ settlement: RecipientSettlement, _ db: Database) throws -> StorageError? {
        guard
            let row = try Row.fetchOne(
                db.cachedStatement(
                    sql: "SELECT number, committed_at, count, is_open, confirmed, pushed, received FROM fanout WHERE event = ?"),
                arguments: [settlement.event])
        else { return nil }
        var fanout = RecipientBits(row: row)
        let old = fanout
        fanout.apply(settlement)
        if fanout != old || fanout.isUnreadable {
            try db.cachedStatement(sql: "UPDATE fanout SET confirmed = ?, pushed = ?, received = ? WHERE number = ?")
                .execute(arguments: [
                    fanout.confirmed.stored, fanout.pushed.stored, Data(fanout.received?.bytes ?? []), row["number"] as Int64,
                ])
            assert(db.changesCount == 1, "recipients of \(settlement.event) were settled in \(db.changesCount) rows")
        }
        if settlement.isClosed && row["is_open"] {
            try db.cachedStatement(sql: "UPDATE fanout SET is_open = 0 WHERE number = ?").execute(arguments: [row["number"] as Int64])
        }
        return fanout.isUnreadable ? RecipientBits.unreadable(event: settlement.event) : nil
    }
}

extension RecipientBits {
    init(row: Row) {
        self.init(
            count: row["count"], committedAt: row["committed_at"], confirmed: [UInt8](row["confirmed"] as Data),
            pushed: [UInt8](row["pushed"] as Data), received: [UInt8](row["received"] as Data))
    }

    static func count(_ row: Row) -> Int { count(row["count"] as Int) }
}

extension PlaceSet {
    /// The column's value; an empty set is stored as no bytes.
    fileprivate var stored: Data { isEmpty ? Data() : Data(bytes) }
}
