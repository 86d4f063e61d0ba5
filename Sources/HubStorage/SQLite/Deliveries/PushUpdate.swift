import GRDB
import HubDelivery

/// Finds rows of `delivery`, and writes their outcomes and attempts.
struct PushUpdate {
    private let find: RawStatement
    private let outcome: RawStatement
    private let note: RawStatement
    private let cancelled: RawStatement

    /// Outcome of a push ended by a receipt. On an open row: a receipt came during the attempt.
    static let receipt = "receipt"

    private static var isFull: String { "COALESCE(length(attempts_log), 0) >= \(AttemptLog.bytesMax)" }

    /// Not `IN`, for which SQLite builds a table of the four words on every run. The table takes as long as the update.
    private static let isOpen: String =
        "CASE state " + PushState.open.map { "WHEN '\($0.rawValue)' THEN 1" }.joined(separator: " ") + " ELSE 0 END"

    init(_ db: Database) throws {
        find = try RawStatement("SELECT rowid, \(Self.isOpen) FROM delivery WHERE event = ?1 AND user = ?2 AND device = ?3", db)
        // A push confirmed during its attempt is not retried: its notification would reappear after its clear.
        let isWithdrawn = "?3 = 'retry' AND outcome = '\(Self.receipt)'"
        // Found by row number: a search by the key takes as long as the rest. The nid guards against foreign renumbering of the rows.
        outcome = try RawStatement(
            """
            UPDATE delivery SET state = CASE WHEN \(isWithdrawn) THEN 'cancelled' ELSE ?3 END, due_at = ?4, attempts = ?5, provider_id = ?6,
              outcome = CASE WHEN \(isWithdrawn) THEN outcome ELSE ?7 END,
              attempts_log = CASE WHEN ?8 IS NULL OR \(Self.isFull) THEN attempts_log ELSE COALESCE(attempts_log, '') || ?8 END
            WHERE rowid = ?1 AND nid = ?2 AND \(Self.isOpen)
            """, db)
        note = try RawStatement(
            "UPDATE delivery SET attempts_log = COALESCE(attempts_log, '') || ?2 WHERE rowid = ?1 AND NOT (\(Self.isFull))", db)
        cancelled = try RawStatement("SELECT state = 'cancelled' FROM delivery WHERE rowid = ?1", db)
    }

    /// - Returns: the row's number; nil if there is no such row or it has ended.
    func openRow(of delivery: PushRecord) throws -> Int64? {
        try find(delivery).flatMap { $0.isOpen ? $0.number : nil }
    }

    private func find(_ delivery: PushRecord) throws -> (number: Int64, isOpen: Bool)? {
        try find.bind(delivery.event, at: 1)
        try find.bind(delivery.user, at: 2)
        try find.bind(DeviceColumn.text(delivery), at: 3)
        return try find.row { ($0.number(0), $0.number(1) != 0) }
    }

    func isCancelled(_ row: Int64) throws -> Bool {
        try cancelled.bind(row, at: 1)
        return try cancelled.row { $0.number(0) != 0 } ?? false
    }

    /// - Returns: the row's number; nil if there is no such row.
    func end(_ delivery: PushRecord) throws -> Int64? {
        let line = delivery.attempt.map(AttemptLog.line)
        if let row = delivery.row, try end(delivery, row, line) { return row }
        guard let found = try find(delivery) else { return nil }
        if found.isOpen, try end(delivery, found.number, line) { return found.number }
        guard let line else { return found.number }
        // The row ended during the attempt, so only the attempt is logged.
        try note.bind(found.number, at: 1)
        try note.bind(line, at: 2)
        try note.run()
        return found.number
    }

    private func end(_ delivery: PushRecord, _ row: Int64, _ line: String?) throws -> Bool {
        try outcome.bind(row, at: 1)
        try outcome.bind(delivery.nid, at: 2)
        try outcome.bind(delivery.state.rawValue, at: 3)
        // A failed push stores its time of failure in `due_at`, by which dead letters are listed.
        try outcome.bind(delivery.state == .failed ? delivery.attempt?.endedAt ?? delivery.dueAt : delivery.dueAt, at: 4)
        try outcome.bind(Int64(delivery.attempts), at: 5)
        try outcome.bind(delivery.providerID, at: 6)
        try outcome.bind(delivery.outcome, at: 7)
        try outcome.bind(line, at: 8)
        let changed = try outcome.run()
        assert(changed <= 1, "the outcome of row \(row) was written into \(changed) rows")
        return changed > 0
    }
}
