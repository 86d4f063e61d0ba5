import GRDB
import GRDBSQLite

/// A statement that runs thousands of times in sequence, bound to SQLite's own handle.
///
/// GRDB makes an array of each row's values and a `Row` per result. Both take longer than SQLite's own work.
struct RawStatement {
    private let texts = TextArena()
    private let db: Database
    private let statement: Statement
    private var handle: SQLiteStatement { unsafe statement.sqliteStatement }

    /// - Parameter sql: cached in prepared form by the connection.
    init(_ sql: String, _ db: Database) throws {
        self.db = db
        statement = try db.cachedStatement(sql: sql)
    }

    /// - Parameter position: from 1.
    func bind(_ text: String?, at position: CInt) throws {
        guard let text else { return try check(unsafe sqlite3_bind_null(handle, position)) }
        let copy = unsafe texts.keep(text)
        try check(unsafe sqlite3_bind_text(handle, position, copy.baseAddress, CInt(copy.count), nil))
    }

    func bind(_ number: Int64, at position: CInt) throws {
        try check(unsafe sqlite3_bind_int64(handle, position, number))
    }

    /// Runs a statement without result rows.
    /// - Returns: the number of rows changed.
    @discardableResult
    func run() throws -> Int {
        let code = unsafe sqlite3_step(handle)
        try end(code == SQLITE_DONE ? nil : failure(code))
        return db.changesCount
    }

    /// Runs a statement with at most one result row.
    /// - Returns: nil if there is none.
    func row<Value>(_ read: (RawStatement) throws -> Value) throws -> Value? {
        let code = unsafe sqlite3_step(handle)
        guard code == SQLITE_ROW else {
            try end(code == SQLITE_DONE ? nil : failure(code))
            return nil
        }
        let value = Result { try read(self) }
        try end(nil)
        return try value.get()
    }

    /// - Parameter column: from 0.
    func text(_ column: CInt) -> String? {
        guard let bytes = unsafe sqlite3_column_text(handle, column) else { return nil }
        let count = Int(unsafe sqlite3_column_bytes(handle, column))
        return unsafe String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
    }

    func number(_ column: CInt) -> Int64 { unsafe sqlite3_column_int64(handle, column) }

    func isNull(_ column: CInt) -> Bool { unsafe sqlite3_column_type(handle, column) == SQLITE_NULL }

    private func end(_ failure: DatabaseError?) throws {
        // Repeats the error of the step, if any.
        _ = unsafe sqlite3_reset(handle)
        // The bindings point into memory that is reused next.
        _ = unsafe sqlite3_clear_bindings(handle)
        texts.reset()
        if let failure { throw failure }
    }

    private func check(_ code: CInt) throws {
        if code != SQLITE_OK { throw failure(code) }
    }

    private func failure(_ code: CInt) -> DatabaseError {
        DatabaseError(resultCode: ResultCode(rawValue: code), message: db.lastErrorMessage)
    }
}

/// Memory for a statement's texts while it runs. Otherwise SQLite would copy each text into memory of its own, under a process-wide lock.
@safe private final class TextArena {
    /// Enough for the texts of nearly every row.
    private static let chunkBytes = 8192
    private var chunks: [UnsafeMutableBufferPointer<CChar>] = unsafe [.allocate(capacity: chunkBytes)]
    private var used = 0

    deinit {
        for unsafe chunk in unsafe chunks { unsafe chunk.deallocate() }
    }

    /// A copy that is valid until `reset`. Never at address null, which SQLite reads as NULL.
    func keep(_ text: String) -> UnsafeMutableBufferPointer<CChar> {
        var text = text
        let count = text.utf8.count
        if unsafe used + count + 1 > chunks[chunks.count - 1].count {
            unsafe chunks.append(.allocate(capacity: max(Self.chunkBytes, count + 1)))
            used = 0
        }
        let place = unsafe UnsafeMutableBufferPointer(rebasing: chunks[chunks.count - 1][used..<used + count])
        used += count + 1
        assert(unsafe used <= chunks[chunks.count - 1].count, "\(used) bytes in a chunk of \(unsafe chunks[chunks.count - 1].count)")
        text.withUTF8 { utf8 in
            if let from = utf8.baseAddress, let to = place.baseAddress {
                unsafe UnsafeMutableRawPointer(to).copyMemory(from: from, byteCount: count)
            }
        }
        return unsafe place
    }

    func reset() {
        while unsafe chunks.count > 1 { unsafe chunks.removeLast().deallocate() }
        used = 0
    }
}
