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
            return unsafe digits.withUnsafeBytes { unsafe isSame($0, UnsafeRawBufferPointer(output)) }
        }
    }

    /// Whether two texts of one length, a multiple of eight, are the same. All words are compared, whatever the first ones say.
    private static func isSame(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
        var difference: UInt64 = 0
        for index in stride(from: 0, to: a.count, by: 8) {
            let own = unsafe a.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            difference |= unsafe own ^ b.loadUnaligned(fromByteOffset: index, as: UInt64.self)
        }
        return difference == 0
    }

    private static func write(_ bytes: [UInt8], to output: UnsafeMutableBufferPointer<UInt8>) -> Int {
        unsafe bytes.withUnsafeBufferPointer { unsafe write($0, to: output) }
    }

    private static func write(_ bytes: UnsafeBufferPointer<UInt8>, to output: UnsafeMutableBufferPointer<UInt8>) -> Int {
        assert(output.count >= bytes.count * 2, "\(bytes.count) bytes need twice as many digits, and there is room for \(output.count)")
        let (input, raw) = (UnsafeRawBufferPointer(bytes), UnsafeMutableRawBufferPointer(output))
        var index = 0
        while index + 4 <= bytes.count {
            let word = unsafe input.loadUnaligned(fromByteOffset: index, as: UInt32.self)
            unsafe raw.storeBytes(of: digits(UInt32(littleEndian: word)).littleEndian, toByteOffset: index * 2, as: UInt64.self)
            index += 4
        }
        while index < bytes.count {
            unsafe output[2 * index] = digit(bytes[index] >> 4)
            unsafe output[2 * index + 1] = digit(bytes[index] & 15)
            index += 1
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

    /// The digits of four bytes, the first byte and its first digit lowest, all eight at once.
    private static func digits(_ bytes: UInt32) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        var halves = UInt64(bytes)
        halves = (halves | halves << 16) & 0x0000_FFFF_0000_FFFF
        halves = (halves | halves << 8) & 0x00FF_00FF_00FF_00FF
        halves = (halves >> 4 | halves << 8) & (ones * 0x0F)
        // 1 in each half from ten on: such a digit is a letter.
        let letters = (halves + ones * 6) >> 4 & ones
        return halves + ones * UInt64(UInt8(ascii: "0")) + letters * UInt64(UInt8(ascii: "a") - UInt8(ascii: "0") - 10)
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
