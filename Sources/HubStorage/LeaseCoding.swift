/// The stored form of the deliveries that one call of `lease` has leased: 24 bytes each.
///
/// An entry names its delivery by row number. Only a foreign VACUUM can change that number, and a checksum of the nid detects it.
enum LeaseCoding {
    struct Entry: Equatable {
        var row: Int64
        /// Milliseconds since 1970.
        var dueAt: Int64
        var attempts: Int32
        var check: UInt32
    }

    private static let entryBytes = 24

    static func check(nid: String) -> UInt32 {
        // FNV-1a.
        nid.utf8.reduce(0x811C_9DC5) { ($0 ^ UInt32($1)) &* 0x0100_0193 }
    }

    static func encode(_ entries: [Entry]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(entries.count * entryBytes)
        func append<Number: FixedWidthInteger>(_ number: Number) {
            for byte in 0..<Number.bitWidth / 8 { bytes.append(UInt8(truncatingIfNeeded: number >> (8 * byte))) }
        }
        for entry in entries {
            append(entry.row)
            append(entry.dueAt)
            append(entry.attempts)
            append(entry.check)
        }
        assert(bytes.count == entries.count * entryBytes, "\(entries.count) entries of \(entryBytes) bytes made \(bytes.count)")
        return bytes
    }

    /// - Returns: the readable entries; of damaged bytes, the whole entries at the beginning.
    static func decode(_ bytes: [UInt8]) -> [Entry] {
        (0..<bytes.count / entryBytes).map { index in
            func number<Number: FixedWidthInteger>(_ offset: Int, _: Number.Type) -> Number {
                (0..<Number.bitWidth / 8).reduce(0) {
                    $0 | Number(truncatingIfNeeded: Int64(bytes[index * entryBytes + offset + $1])) << (8 * $1)
                }
            }
            return Entry(
                row: number(0, Int64.self), dueAt: number(8, Int64.self), attempts: number(16, Int32.self), check: number(20, UInt32.self))
        }
    }
}
