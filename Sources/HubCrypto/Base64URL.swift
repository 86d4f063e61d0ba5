/// Base64 with the URL alphabet and without padding, as in JSON Web Tokens (RFC 7515, 2).
package enum Base64URL {
    /// The text of `bytes`, without padding.
    package static func encode(_ bytes: [UInt8]) -> String {
        var output: [UInt8] = []
        output.reserveCapacity((bytes.count * 4 + 2) / 3)
        var pending: UInt32 = 0
        var bitCount: UInt32 = 0
        for byte in bytes {
            pending = pending << 8 | UInt32(byte)
            bitCount += 8
            while bitCount >= 6 {
                bitCount -= 6
                output.append(alphabet[Int(pending >> bitCount & 63)])
            }
            pending &= (1 << bitCount) - 1
        }
        assert(bitCount < 6 && pending >> bitCount == 0, "\(bitCount) bits are left, and their value is \(pending)")
        if bitCount > 0 { output.append(alphabet[Int(pending << (6 - bitCount) & 63)]) }
        return String(decoding: output, as: UTF8.self)
    }

    /// The bytes; nil for padding, another alphabet, an impossible length, or left-over bits that are not zero, so that
    /// one value has one spelling only.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        var output: [UInt8] = []
        output.reserveCapacity(text.utf8.count * 3 / 4)
        var pending: UInt32 = 0
        var bitCount: UInt32 = 0
        for character in text.utf8 {
            guard let value = value(character) else { return nil }
            pending = pending << 6 | UInt32(value)
            bitCount += 6
            if bitCount >= 8 {
                bitCount -= 8
                output.append(UInt8(pending >> bitCount))
                pending &= (1 << bitCount) - 1
            }
        }
        return bitCount < 6 && pending == 0 ? output : nil
    }

    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    private static func value(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        default: nil
        }
    }
}
