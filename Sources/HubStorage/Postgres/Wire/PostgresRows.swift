import CPostgreSQL

/// The result of one statement: its rows in binary form, freed with the last reference.
@safe final class PostgresRows {
    private let result: OpaquePointer
    private var columns: [String: CInt] = [:]

    /// - Parameter result: owned by the new object.
    init(_ result: OpaquePointer) {
        unsafe self.result = result
    }

    deinit { unsafe PQclear(result) }

    /// Number of rows.
    var count: Int { Int(unsafe PQntuples(result)) }
    /// Rows that the statement wrote; 0 for one that only reads.
    var written: Int { Int(unsafe String(cString: PQcmdTuples(result))) ?? 0 }
    /// The server's name of what it did: `COMMIT`, `INSERT 0 1`.
    var tag: String { unsafe String(cString: PQcmdStatus(result)) }
    var isEmpty: Bool { count == 0 }
    /// The first row; nil for none.
    var first: PostgresRow? { isEmpty ? nil : self[0] }

    subscript(_ index: Int) -> PostgresRow {
        precondition((0..<count).contains(index), "row \(index) of \(count)")
        return PostgresRow(rows: self, index: CInt(index))
    }

    func map<Value>(_ body: (PostgresRow) throws -> Value) rethrows -> [Value] { try (0..<count).map { try body(self[$0]) } }
    func compactMap<Value>(_ body: (PostgresRow) throws -> Value?) rethrows -> [Value] {
        try (0..<count).compactMap { try body(self[$0]) }
    }

    fileprivate func number(of column: String) -> CInt {
        if let known = columns[column] { return known }
        let number = unsafe PQfnumber(result, column)
        precondition(number >= 0, "a result has no column \(column)")
        columns[column] = number
        return number
    }

    fileprivate func isNull(_ row: CInt, _ column: CInt) -> Bool { unsafe PQgetisnull(result, row, column) != 0 }

    fileprivate func bytes<Value>(_ row: CInt, _ column: CInt, _ read: (UnsafeRawBufferPointer) -> Value) -> Value {
        let count = Int(unsafe PQgetlength(result, row, column))
        return unsafe read(UnsafeRawBufferPointer(start: PQgetvalue(result, row, column), count: count))
    }
}

/// One row of a result. Each reader stops the process if the column does not exist or is NULL: queries name their columns themselves.
struct PostgresRow {
    fileprivate let rows: PostgresRows
    fileprivate let index: CInt

    func text(_ column: String) -> String {
        guard let text = textOrNil(column) else { preconditionFailure("\(column) is NULL") }
        return text
    }

    func textOrNil(_ column: String) -> String? {
        unsafe read(column) { unsafe String(decoding: $0, as: UTF8.self) }
    }

    func int(_ column: String) -> Int64 {
        guard let number = intOrNil(column) else { preconditionFailure("\(column) is NULL") }
        return number
    }

    /// A number of two, four or eight bytes.
    func intOrNil(_ column: String) -> Int64? {
        unsafe read(column) { bytes in
            precondition([2, 4, 8].contains(bytes.count), "\(column) has \(bytes.count) bytes")
            let isNegative = unsafe bytes.first.map { $0 & 0x80 != 0 } ?? false
            return unsafe bytes.reduce(isNegative ? Int64(-1) : 0) { $0 << 8 | Int64($1) }
        }
    }

    func bytes(_ column: String) -> [UInt8] {
        guard let bytes = bytesOrNil(column) else { preconditionFailure("\(column) is NULL") }
        return bytes
    }

    func bytesOrNil(_ column: String) -> [UInt8]? { unsafe read(column) { unsafe [UInt8]($0) } }

    func bool(_ column: String) -> Bool { unsafe read(column) { unsafe $0.first == 1 } ?? false }

    func isNull(_ column: String) -> Bool { rows.isNull(index, rows.number(of: column)) }

    /// A value of a closed set.
    /// - Throws: `StorageError.Code.unreadableRow`, which names the column.
    func value<Value: RawRepresentable<String>>(_ column: String, of table: String) throws(StorageError) -> Value {
        guard let value = Value(rawValue: text(column)) else {
            throw StorageError(.unreadableRow, "a row of the table `\(table)` has an unknown `\(column)`; repair or delete it")
        }
        return value
    }

    private func read<Value>(_ column: String, _ body: (UnsafeRawBufferPointer) -> Value) -> Value? {
        let number = rows.number(of: column)
        return unsafe rows.isNull(index, number) ? nil : rows.bytes(index, number, body)
    }
}
