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

/// The values of a fan-out's row, encoded on the caller's thread.
struct RecipientColumns: Sendable {
    let snapshot: RecipientSnapshot
    let isOpen: Bool
    let pushed: PlaceSet
    let notes: [UInt8]

    /// Longest list whose users `snapshot_user` names one by one: bounds the rows of the list's first commit.
    static let smallUsersMax = 64

    /// Nil if there are no recipients.
    init?(_ opening: RecipientOpening) {
        guard !opening.notes.isEmpty else { return nil }
        assert(opening.notes.count <= RecipientBits.countMax, "an event with \(opening.notes.count) recipients would be read as damaged")
        snapshot = opening.snapshot
        isOpen = opening.notes.contains { $0.choice == .awaited }
        var places = PlaceSet(count: opening.notes.count)
        for (place, note) in opening.notes.enumerated() where note.choice == .pushed { places.insert(place) }
        pushed = places
        notes = NoteCoding.encode(opening.notes)
    }

    static func isLarge(_ snapshot: RecipientSnapshot) -> Bool { snapshot.users.count > smallUsersMax }
    var isLarge: Bool { Self.isLarge(snapshot) }
}

/// The recipients' state in a fan-out's row.
struct RecipientBits: Equatable {
    let count: Int
    let committedAt: Int64
    var confirmed: PlaceSet
    var pushed: PlaceSet
    /// Nil if no receipt was stored.
    var received: ReceiptTimes?
    /// Part of the row was unreadable and counts as empty.
    let isUnreadable: Bool

    /// More recipients than an event can have. A row with a higher count is damaged, and must not make the process reserve memory.
    static let countMax = 1 << 24

    init(row: Row) {
        count = Self.count(row)
        committedAt = row["committed_at"]
        let confirmed = PlaceSet(bytes: [UInt8](row["confirmed"] as Data), count: count)
        let pushed = PlaceSet(bytes: [UInt8](row["pushed"] as Data), count: count)
        let times = [UInt8](row["received"] as Data)
        received = times.isEmpty ? nil : ReceiptTimes(bytes: times, count: count)
        isUnreadable = confirmed == nil || pushed == nil || received == nil && !times.isEmpty
        self.confirmed = confirmed ?? PlaceSet(count: count)
        self.pushed = pushed ?? PlaceSet(count: count)
    }

    mutating func apply(_ settlement: RecipientSettlement) {
        for confirmation in settlement.confirmed {
            let place = confirmation.recipient
            guard (0..<count).contains(place), !confirmed.contains(place) else { continue }
            confirmed.insert(place)
            if received == nil { received = ReceiptTimes(count: count) }
            received?.set(place, milliseconds: confirmation.at - committedAt)
        }
        for place in settlement.pushed where (0..<count).contains(place) { pushed.insert(place) }
    }

    /// The row's number of recipients; 0 if the value is impossible.
    static func count(_ row: Row) -> Int {
        let count: Int = row["count"]
        return (0...countMax).contains(count) ? count : 0
    }

    static func unreadable(event: String) -> StorageError {
        StorageError(
            .unreadableRow, "who was told of an event cannot be read entirely; some may be told again (event \(event))")
    }
}

extension PlaceSet {
    /// The column's value; an empty set is stored as no bytes.
    fileprivate var stored: Data { isEmpty ? Data() : Data(bytes) }
}
