internal import Glibc

/// Searches in the bytes of a head, and comparisons with fixed texts.
extension UnsafeRawBufferPointer {
    /// The first place of a byte at or after `start`; nil without one.
    func place(of byte: UInt8, from start: Int = 0) -> Int? {
        guard let base = baseAddress, start < count,
            let found = unsafe memchr(base + start, Int32(byte), count - start)
        else { return nil }
        return unsafe UnsafeRawPointer(found) - base
    }

    /// Skips ASCII characters from `least` to 0x7E, in steps of eight; up to seven of them may be left.
    func skipASCII(from start: Int, least: UInt8) -> Int {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let highBits = ones << 7
        var index = start
        let reach = ones &* UInt64(0x80 - least)
        // No byte has its high bit set, so no sum is carried over to the next byte.
        // Then the first sum sets all high bits, and the second none.
        while index + 8 <= count {
            let word = unsafe loadUnaligned(fromByteOffset: index, as: UInt64.self)
            guard word & highBits == 0, (word &+ reach) & ~(word &+ ones) & highBits == highBits else { break }
            index += 8
        }
        return index
    }

    /// Whether the bytes in that range are the text's.
    func spell(_ text: StaticString, in range: Range<Int>) -> Bool {
        guard range.count == text.utf8CodeUnitCount else { return false }
        for index in 0..<range.count where unsafe self[range.lowerBound + index] != text.utf8Start[index] { return false }
        return true
    }

    /// As `spell`, in any case of letters. The text has small letters, digits and hyphens only.
    /// The bytes hold no control characters, which the set bit would turn into digits and hyphens.
    func spellInAnyCase(_ text: StaticString, in range: Range<Int>) -> Bool {
        guard range.count == text.utf8CodeUnitCount else { return false }
        for index in 0..<range.count where unsafe self[range.lowerBound + index] | 0x20 != text.utf8Start[index] { return false }
        return true
    }
}
