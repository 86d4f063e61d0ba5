import GRDB
import GRDBSQLite
import HubDelivery

/// Inserts thousands of rows of `delivery` in sequence, inside the writer's transaction.
///
/// Binds to SQLite's statement directly: GRDB first makes an array of each row's values, which takes longer than the insertion. Values that
/// differ per row lie in one buffer that SQLite reads in place; constant values are bound once. Otherwise SQLite would allocate, lock its
/// byte counter and free for each value.
struct PushInsertion {
    private let db: Database
    private let statement: Statement
    private var handle: SQLiteStatement { unsafe statement.sqliteStatement }
    /// The texts of one row, in UTF-8.
    private var texts: [UInt8] = []
    /// Values bound for longer than one row, by position.
    private var kept: [String?] = Array(repeating: nil, count: 14)
    private var keptNumber: Int64?

    /// - Parameter ignoringKnown: true keeps existing rows as they are; false fails on them.
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

    /// - Returns: whether the row was new.
    mutating func insert(_ record: PushRecord, _ message: StoredMessage?) throws -> Bool {
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
        assert(!texts.isEmpty, "a delivery without an nid: its bindings would be at address null, which SQLite reads as NULL")
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
        // Repeats the error of the step, if any.
        _ = unsafe sqlite3_reset(handle)
        if let failure { throw failure }
        assert((0...1).contains(db.changesCount), "one delivery was inserted into \(db.changesCount) rows")
        return db.changesCount > 0
    }

    /// Binds a value for this row and the following ones, until another value is given.
    private mutating func keep(_ text: String?, at position: CInt) throws {
        guard kept[Int(position)] != text else { return }
        kept[Int(position)] = text
        guard let text else { return try check(unsafe sqlite3_bind_null(handle, position)) }
        // SQLITE_TRANSIENT: SQLite copies the text.
        let copied = unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        try check(unsafe text.withCString { unsafe sqlite3_bind_text(handle, position, $0, CInt(text.utf8.count), copied) })
    }

    private mutating func keep(_ number: Int64?, at position: CInt) throws {
        guard keptNumber != number else { return }
        keptNumber = number
        try check(unsafe number.map { unsafe sqlite3_bind_int64(handle, position, $0) } ?? sqlite3_bind_null(handle, position))
    }

    /// Binds a value for this row only. SQLite reads the bytes in place during this row's step. The next row binds new values, and the next
    /// insertion with this statement clears all bindings first.
    private func bind(_ texts: UnsafeRawBufferPointer, _ range: Range<Int>, at position: CInt) throws {
        // Never a null pointer, which would bind NULL: every row has an nid, so the buffer is not empty.
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
