import GRDB
import HubDelivery

/// Writes what becomes of rows of `delivery`: their leases, and their outcomes with the attempts that led to them.
struct DeliveryUpdate {
    private let lease: RawStatement
    private let outcome: RawStatement
    private let note: RawStatement

    private static var isFull: String { "COALESCE(length(attempts_log), 0) >= \(AttemptLog.bytesMax)" }

    /// Not `IN`: for that SQLite makes a table of the four words at every run, which takes as long as the update.
    private static let isOpen: String =
        "CASE state " + DeliveryState.open.map { "WHEN '\($0.rawValue)' THEN 1" }.joined(separator: " ") + " ELSE 0 END"

    init(_ db: Database) throws {
        let key = "WHERE event = ?1 AND user = ?2 AND device = ?3 AND \(Self.isOpen)"
        lease = try RawStatement("UPDATE delivery SET state = ?4, due_at = ?5, attempts = ?6 \(key)", db)
        outcome = try RawStatement(
            """
            UPDATE delivery SET state = ?4, due_at = ?5, attempts = ?6, provider_id = ?7, outcome = ?8,
              attempts_log = CASE WHEN ?9 IS NULL OR \(Self.isFull) THEN attempts_log ELSE COALESCE(attempts_log, '') || ?9 END
            \(key)
            """, db)
        note = try RawStatement(
            """
            UPDATE delivery SET attempts_log = COALESCE(attempts_log, '') || ?4
            WHERE event = ?1 AND user = ?2 AND device = ?3 AND NOT (\(Self.isFull))
            """, db)
    }

    /// - Returns: whether the row is open.
    func lease(_ delivery: DeliveryRecord) throws -> Bool {
        try bindCommon(delivery, dueAt: delivery.dueAt, to: lease)
        return try lease.run() > 0
    }

    func end(_ delivery: DeliveryRecord) throws {
        let line = delivery.attempt.map(AttemptLog.line)
        // What has failed is listed by when it did.
        let dueAt = delivery.state == .failed ? delivery.attempt?.endedAt ?? delivery.dueAt : delivery.dueAt
        try bindCommon(delivery, dueAt: dueAt, to: outcome)
        try outcome.bind(delivery.providerID, at: 7)
        try outcome.bind(delivery.outcome, at: 8)
        try outcome.bind(line, at: 9)
        if try outcome.run() > 0 { return }
        guard let line else { return }
        // The row has ended meanwhile, and the attempt was made all the same.
        try bindKey(delivery, to: note)
        try note.bind(line, at: 4)
        try note.run()
    }

    private func bindKey(_ delivery: DeliveryRecord, to statement: RawStatement) throws {
        try statement.bind(delivery.event, at: 1)
        try statement.bind(delivery.user, at: 2)
        try statement.bind(DeviceColumn.text(delivery), at: 3)
    }

    private func bindCommon(_ delivery: DeliveryRecord, dueAt: Int64, to statement: RawStatement) throws {
        try bindKey(delivery, to: statement)
        try statement.bind(delivery.state.rawValue, at: 4)
        try statement.bind(dueAt, at: 5)
        try statement.bind(Int64(delivery.attempts), at: 6)
    }
}
