/// Writes a message's version, kind and fields.
struct FieldWriter {
    private(set) var bytes: [UInt8] = []

    mutating func begin(_ version: UInt8, _ kind: UInt8) { bytes += [version, kind] }

    mutating func add(_ field: [UInt8]) {
        addLength(field.count)
        bytes += field
    }

    mutating func add(_ text: String) {
        addLength(text.utf8.count)
        bytes += text.utf8
    }

    mutating func add(_ number: UInt64) {
        addLength(8)
        for place in (0..<8).reversed() { bytes.append(UInt8(truncatingIfNeeded: number >> (8 * UInt64(place)))) }
    }

    private mutating func addLength(_ count: Int) {
        for place in (0..<4).reversed() { bytes.append(UInt8(truncatingIfNeeded: count >> (8 * place))) }
    }
}
