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
            assert(count == digits.count, "\(count) digits are compared with \(digits.count)")
            return unsafe digits.withUnsafeBytes { unsafe CRYPTO_memcmp($0.baseAddress, output.baseAddress, count) } == 0
        }
    }

    private static func write(_ bytes: [UInt8], to output: UnsafeMutableBufferPointer<UInt8>) -> Int {
        unsafe bytes.withUnsafeBufferPointer { unsafe write($0, to: output) }
    }

    private static func write(_ bytes: UnsafeBufferPointer<UInt8>, to output: UnsafeMutableBufferPointer<UInt8>) -> Int {
        assert(output.count >= bytes.count * 2, "\(bytes.count) bytes need twice as many digits, and there is room for \(output.count)")
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
