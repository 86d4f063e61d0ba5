/// Bytes of a format that other builds read, as a test writes them down: two hexadecimal digits each, in as many words as one likes.
package struct FrozenBytes: Equatable, ExpressibleByStringLiteral, CustomStringConvertible {
    package let bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// - Parameter text: digits alone; a test's own text, so that any other character is a mistake of the test.
    package init(stringLiteral text: String) {
        let digits = text.filter { !$0.isWhitespace }.map { $0.hexDigitValue ?? 0 }
        precondition(digits.count % 2 == 0, "half a byte in '\(text)'")
        bytes = stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    package var description: String {
        bytes.map { (byte: UInt8) in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
    }
}
