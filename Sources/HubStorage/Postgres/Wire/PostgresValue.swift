/// A value of a statement's parameter, sent in PostgreSQL's binary form.
enum PostgresValue: Sendable, Equatable {
    case text(String?)
    case int(Int64?)
    case bytes([UInt8]?)
    case bool(Bool?)
    /// Parallel arrays for `unnest`, one element per row.
    case texts([String?])
    case ints([Int64?])
    case blobs([[UInt8]?])
    case bools([Bool])

    /// A number of any width.
    static func int(_ number: Int) -> PostgresValue { .int(Int64(number)) }
}

/// A statement with its values: `$1` is the first one.
struct PostgresStatement: Sendable {
    let sql: String
    let values: [PostgresValue]

    init(_ sql: String, _ values: [PostgresValue] = []) {
        self.sql = sql
        self.values = values
    }
}

/// A statement's values in binary form, one after another.
struct PostgresParameters {
    /// PostgreSQL's number of each value's type, from its catalogue `pg_type`.
    private(set) var types: [UInt32] = []
    /// Place of each value in `bytes`; nil stands for NULL.
    private(set) var ranges: [Range<Int>?] = []
    private(set) var bytes: [UInt8] = []

    private enum TypeNumber {
        static let bool: UInt32 = 16
        static let bytes: UInt32 = 17
        static let int: UInt32 = 20
        static let text: UInt32 = 25
        static let bools: UInt32 = 1000
        static let blobs: UInt32 = 1001
        static let ints: UInt32 = 1016
        static let texts: UInt32 = 1009
    }

    /// - Throws: `StorageError` for a text with a NUL character, which PostgreSQL cannot hold.
    init(_ values: [PostgresValue]) throws(StorageError) {
        for value in values { try add(value) }
        assert(types.count == ranges.count && types.count == values.count, "\(types.count) types for \(values.count) values")
    }

    private mutating func add(_ value: PostgresValue) throws(StorageError) {
        let start = bytes.count
        switch value {
        case .text(let text):
            types.append(TypeNumber.text)
            guard let text else { return ranges.append(nil) }
            try append(text)
        case .int(let number):
            types.append(TypeNumber.int)
            guard let number else { return ranges.append(nil) }
            append(number)
        case .bytes(let blob):
            types.append(TypeNumber.bytes)
            guard let blob else { return ranges.append(nil) }
            bytes += blob
        case .bool(let flag):
            types.append(TypeNumber.bool)
            guard let flag else { return ranges.append(nil) }
            bytes.append(flag ? 1 : 0)
        case .texts(let texts):
            types.append(TypeNumber.texts)
            beginArray(of: TypeNumber.text, count: texts.count, hasNull: texts.contains { $0 == nil })
            for text in texts {
                guard let text else {
                    append(Int32(-1))
                    continue
                }
                append(Int32(text.utf8.count))
                try append(text)
            }
        case .ints(let numbers):
            types.append(TypeNumber.ints)
            beginArray(of: TypeNumber.int, count: numbers.count, hasNull: numbers.contains { $0 == nil })
            for number in numbers {
                append(Int32(number == nil ? -1 : 8))
                if let number { append(number) }
            }
        case .blobs(let blobs):
            types.append(TypeNumber.blobs)
            beginArray(of: TypeNumber.bytes, count: blobs.count, hasNull: blobs.contains { $0 == nil })
            for blob in blobs {
                append(Int32(blob?.count ?? -1))
                if let blob { bytes += blob }
            }
        case .bools(let flags):
            types.append(TypeNumber.bools)
            beginArray(of: TypeNumber.bool, count: flags.count, hasNull: false)
            for flag in flags {
                append(Int32(1))
                bytes.append(flag ? 1 : 0)
            }
        }
        ranges.append(start..<bytes.count)
    }

    /// The header of an array: dimensions, whether it has NULLs, its elements' type, and for its one dimension the length and first index.
    private mutating func beginArray(of type: UInt32, count: Int, hasNull: Bool) {
        append(Int32(count == 0 ? 0 : 1))
        append(Int32(hasNull ? 1 : 0))
        append(type)
        guard count > 0 else { return }
        append(Int32(count))
        append(Int32(1))
    }

    private mutating func append(_ text: String) throws(StorageError) {
        let start = bytes.count
        bytes += text.utf8
        guard !bytes[start...].contains(0) else {
            throw StorageError(.badText, "a text with a NUL character cannot be stored in PostgreSQL; leave the character out")
        }
    }

    private mutating func append<Number: FixedWidthInteger>(_ number: Number) {
        for place in (0..<Number.bitWidth / 8).reversed() { bytes.append(UInt8(truncatingIfNeeded: number >> (8 * place))) }
    }
}
