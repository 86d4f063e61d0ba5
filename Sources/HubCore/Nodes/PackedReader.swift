/// Reads what `PackedWriter` wrote. Every call throws where the bytes end too early or have another shape.
package struct PackedReader {
    /// The bytes are no message of this version.
    package struct Malformed: Error {
        package init() {}
    }

    private let bytes: ArraySlice<UInt8>
    private var next: Int

    package init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        next = bytes.startIndex
    }

    /// Nothing follows: an older build has written the message, without the fields at its end.
    package var isAtEnd: Bool { next == bytes.endIndex }

    package mutating func number() throws(Malformed) -> UInt64 {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), through: 63, by: 7) {
            guard next < bytes.endIndex else { break }
            let byte = bytes[next]
            next += 1
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
        }
        throw Malformed()
    }

    package mutating func signed() throws(Malformed) -> Int64 {
        let number = try number()
        return Int64(bitPattern: number >> 1) ^ -Int64(bitPattern: number & 1)
    }

    /// A number below 2^31.
    package mutating func count() throws(Malformed) -> Int {
        let number = try number()
        guard number <= UInt64(Int32.max) else { throw Malformed() }
        return Int(number)
    }

    package mutating func flag() throws(Malformed) -> Bool { try number() != 0 }

    package mutating func field() throws(Malformed) -> [UInt8] {
        let count = try count()
        guard count <= bytes.endIndex - next else { throw Malformed() }
        defer { next += count }
        return Array(bytes[next..<next + count])
    }

    package mutating func text() throws(Malformed) -> String {
        let count = try count()
        guard count <= bytes.endIndex - next else { throw Malformed() }
        defer { next += count }
        return String(decoding: bytes[next..<next + count], as: UTF8.self)
    }

    package mutating func optional<Value>(_ read: (inout PackedReader) throws(Malformed) -> Value) throws(Malformed) -> Value? {
        try flag() ? try read(&self) : nil
    }

    package mutating func optionalText() throws(Malformed) -> String? {
        try optional { reader throws(Malformed) in try reader.text() }
    }

    package mutating func list<Element>(_ read: (inout PackedReader) throws(Malformed) -> Element) throws(Malformed) -> [Element] {
        let count = try count()
        // An element takes a byte at least, so a false count reserves nothing.
        guard count <= bytes.endIndex - next else { throw Malformed() }
        var elements: [Element] = []
        elements.reserveCapacity(count)
        for _ in 0..<count { elements.append(try read(&self)) }
        return elements
    }
}
