import COpenSSL
/// Lower-case hexadecimal, as every Pusher signature is written.
package enum Hex {
    /// Takes arrays only: an unspecialized loop over another sequence costs more than the digest itself.
    package static func encode(_ bytes: [UInt8]) -> String {
        unsafe String(unsafeUninitializedCapacity: bytes.count * 2) { unsafe write(bytes, to: $0) }
    }

    /// As `encode`, but as ASCII bytes.
    package static func digits(of bytes: [UInt8]) -> [UInt8] {
        unsafe [UInt8](unsafeUninitializedCapacity: bytes.count * 2) { output, count in count = unsafe write(bytes, to: output) }
    }

    /// Whether `digits` spell `bytes`. The time taken does not depend on the place of the first difference.
    static func isWritten(_ bytes: UnsafeBufferPointer<UInt8>, as digits: ArraySlice<UInt8>) -> Bool {
        guard digits.count == bytes.count * 2 else { return false }
        return unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: digits.count) { output in
            let count = unsafe write(bytes, to: output)
            return unsafe digits.withUnsafeBytes { unsafe CRYPTO_memcmp($0.baseAddress, output.baseAddress, count) } == 0
        }
    }

    private static func write(_ bytes: [UInt8], to output: UnsafeMutableBufferPointer<UInt8>) -> Int {
        unsafe bytes.withUnsafeBufferPointer { unsafe write($0, to: output) }
    }

    private static func write(_ bytes: UnsafeBufferPointer<UInt8>, to output: UnsafeMutableBufferPointer<UInt8>) -> Int {
        for unsafe (index, byte) in unsafe bytes.enumerated() {
            unsafe output[2 * index] = digit(byte >> 4)
            unsafe output[2 * index + 1] = digit(byte & 15)
        }
        return bytes.count * 2
    }

    /// Decodes digits of either case; nil for an odd count or any other character.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        var output: [UInt8] = []
        output.reserveCapacity(text.utf8.count / 2)
        var high: UInt8?
        for character in text.utf8 {
            guard let value = value(character) else { return nil }
            if let first = high {
                output.append(first << 4 | value)
                high = nil
            } else {
                high = value
            }
        }
        return high == nil ? output : nil
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }

    private static func value(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

/// Base64 with the URL alphabet and without padding, as in JSON Web Tokens (RFC 7515, 2).
package enum Base64URL {
    /// The text of `bytes`, without padding.
    package static func encode(_ bytes: some Sequence<UInt8>) -> String {
        var output: [UInt8] = []
        output.reserveCapacity((bytes.underestimatedCount * 4 + 2) / 3)
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
