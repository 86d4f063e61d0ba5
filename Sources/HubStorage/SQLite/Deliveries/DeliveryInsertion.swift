import GRDB
import GRDBSQLite
import HubDelivery

/// Inserts rows of `delivery`, thousands one after another, inside the writer's transaction.
///
/// Binds to SQLite's statement itself: GRDB makes an array of each row's values first, which takes longer than inserting them. What
/// differs from row to row is laid side by side in one buffer, which SQLite reads in place; what stays the same is bound once.
/// SQLite would otherwise allocate, lock its count of bytes and free for each value.
struct DeliveryInsertion {
    private let db: Database
    private let statement: Statement
    private var handle: SQLiteStatement { unsafe statement.sqliteStatement }
    /// The texts of one row, in UTF-8.
    private var texts: [UInt8] = []
    /// What is bound for longer than one row, by position.
    private var kept: [String?] = Array(repeating: nil, count: 14)
    private var keptNumber: Int64?

    /// - Parameter ignoringKnown: leaves rows that are there as they are; otherwise such a row fails.
    init(ignoringKnown: Bool, _ db: Database) throws {
        self.db = db
        statement = try db.cachedStatement(
            sql: """
                INSERT INTO delivery
                  (event, user, device, nid, app, state, reason, due_at, attempts, message, provider_id, outcome, address, message_number)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                \(ignoringKnown ? "ON CONFLICT (event, user, device) DO NOTHING" : "")
                """)
        _ = unsafe sqlite3_clear_bindings(handle)
    }

    /// - Returns: whether the row was not there.
    mutating func insert(_ record: DeliveryRecord, _ message: StoredMessage?) throws -> Bool {
        try keep(record.event, at: 1)
        try keep(record.app, at: 5)
        try keep(record.state.rawValue, at: 6)
        try keep(record.reason, at: 7)
        try check(unsafe sqlite3_bind_int64(handle, 8, record.dueAt))
        try check(unsafe sqlite3_bind_int64(handle, 9, Int64(record.attempts)))
        try keep(record.providerID, at: 11)
        try keep(record.outcome, at: 12)
        try keep(record.address.map(DirectAddressCoding.text), at: 13)
        try keep(message?.number, at: 14)

        texts.removeAll(keepingCapacity: true)
        texts += record.user.utf8
        let device = texts.count
        DeviceColumn.append(record, to: &texts)
        let nid = texts.count
        texts += record.nid.utf8
        let own = texts.count
        message?.appendOwn(to: &texts, nid: record.nid)
        let code = try unsafe texts.withUnsafeBytes { texts in
            try unsafe bind(texts, 0..<device, at: 2)
            try unsafe bind(texts, device..<nid, at: 3)
            try unsafe bind(texts, nid..<own, at: 4)
            if message == nil {
                try check(unsafe sqlite3_bind_null(handle, 10))
            } else {
                try unsafe bind(texts, own..<texts.count, at: 10)
            }
            return unsafe sqlite3_step(handle)
        }
        let failure = code == SQLITE_DONE ? nil : failure(code)
        // Says again what failed, if something did.
        _ = unsafe sqlite3_reset(handle)
        if let failure { throw failure }
        return db.changesCount > 0
    }

    /// For this row and those that follow, until another value is given.
    private mutating func keep(_ text: String?, at position: CInt) throws {
        guard kept[Int(position)] != text else { return }
        kept[Int(position)] = text
        guard let text else { return try check(unsafe sqlite3_bind_null(handle, position)) }
        // SQLite copies it.
        let copied = unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        try check(unsafe text.withCString { unsafe sqlite3_bind_text(handle, position, $0, CInt(text.utf8.count), copied) })
    }

    private mutating func keep(_ number: Int64?, at position: CInt) throws {
        guard keptNumber != number else { return }
        keptNumber = number
        try check(unsafe number.map { unsafe sqlite3_bind_int64(handle, position, $0) } ?? sqlite3_bind_null(handle, position))
    }

    /// For this row: SQLite reads the bytes where they are, in this row's step and not after it. The next row binds others first, and
    /// the next insertion with this statement begins by clearing all.
    private func bind(_ texts: UnsafeRawBufferPointer, _ range: Range<Int>, at position: CInt) throws {
        // Never a null pointer, which would bind NULL: an nid is in every row.
        let start = unsafe texts.baseAddress?.advanced(by: range.lowerBound).assumingMemoryBound(to: CChar.self)
        try check(unsafe sqlite3_bind_text(handle, position, start, CInt(range.count), nil))
    }

    private func check(_ code: CInt) throws {
        if code != SQLITE_OK { throw failure(code) }
    }

    private func failure(_ code: CInt) -> DatabaseError {
        DatabaseError(resultCode: ResultCode(rawValue: code), message: db.lastErrorMessage)
    }
}
