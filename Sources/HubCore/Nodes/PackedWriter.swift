/// Writes numbers and texts in few bytes, for messages between nodes. A number takes a byte for each seven bits.
package struct PackedWriter: Sendable {
    package private(set) var bytes: [UInt8] = []

    package init() {}

    package mutating func add(_ number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    package mutating func add(_ number: Int64) { add(UInt64(bitPattern: number << 1 ^ number >> 63)) }
    package mutating func add(_ count: Int) { add(UInt64(count)) }
    package mutating func add(_ flag: Bool) { add(UInt64(flag ? 1 : 0)) }

    package mutating func add(_ text: String) {
        add(text.utf8.count)
        bytes += text.utf8
    }

    package mutating func add(_ field: [UInt8]) {
        add(field.count)
        bytes += field
    }

    /// A value that may be missing.
    package mutating func add<Value>(_ value: Value?, _ write: (inout PackedWriter, Value) -> Void) {
        add(value != nil)
        if let value { write(&self, value) }
    }

    package mutating func add(_ text: String?) { add(text) { $0.add($1) } }

    package mutating func add<Element>(_ elements: some Collection<Element>, _ write: (inout PackedWriter, Element) -> Void) {
        add(elements.count)
        for element in elements { write(&self, element) }
    }
}
