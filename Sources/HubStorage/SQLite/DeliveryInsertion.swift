import GRDB
import GRDBSQLite
import HubDelivery

/// Inserts rows of `delivery`, thousands one after another, inside the writer's transaction.
///
/// Binds to SQLite's statement itself: GRDB makes an array of each row's values first, which takes longer than inserting them.
struct DeliveryInsertion {
    private let db: Database
    private let statement: Statement
    private var handle: SQLiteStatement { unsafe statement.sqliteStatement }

    /// - Parameter ignoringKnown: leaves rows that are there as they are; otherwise such a row fails.
    init(ignoringKnown: Bool, _ db: Database) throws {
        self.db = db
        statement = try db.cachedStatement(
            sql: """
                INSERT INTO delivery
                  (event, user, device, nid, app, state, reason, due_at, attempts, message, provider_id, outcome, address)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                \(ignoringKnown ? "ON CONFLICT (event, user, device) DO NOTHING" : "")
                """)
    }

    /// - Returns: whether the row was not there.
    func insert(_ delivery: WrittenDelivery) throws -> Bool {
        let record = delivery.record
        let texts = [
            record.event, record.user, record.device, record.nid, record.app, record.state.rawValue, record.reason,
        ]
        for (index, text) in texts.enumerated() { try bind(text, at: CInt(index + 1)) }
        try check(unsafe sqlite3_bind_int64(handle, 8, record.dueAt))
        try check(unsafe sqlite3_bind_int64(handle, 9, Int64(record.attempts)))
        try bind(delivery.messageText, at: 10)
        try bind(record.providerID, at: 11)
        try bind(record.outcome, at: 12)
        try bind(record.address.map(DirectAddressCoding.text), at: 13)
        let code = unsafe sqlite3_step(handle)
        let failure = code == SQLITE_DONE ? nil : failure(code)
        // Says again what failed, if something did.
        _ = unsafe sqlite3_reset(handle)
        if let failure { throw failure }
        return db.changesCount > 0
    }

    private func bind(_ text: String?, at position: CInt) throws {
        guard let text else { return try check(unsafe sqlite3_bind_null(handle, position)) }
        // SQLite copies it: it is read when the statement runs.
        let copied = unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        try check(unsafe text.withCString { unsafe sqlite3_bind_text(handle, position, $0, CInt(text.utf8.count), copied) })
    }

    private func check(_ code: CInt) throws {
        if code != SQLITE_OK { throw failure(code) }
    }

    private func failure(_ code: CInt) -> DatabaseError {
        DatabaseError(resultCode: ResultCode(rawValue: code), message: db.lastErrorMessage)
    }
}
