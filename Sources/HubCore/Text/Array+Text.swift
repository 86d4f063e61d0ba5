/// Texts and numbers as bytes, appended in one piece: as a sequence of bytes a short text costs three times as much.
/// Nothing is allocated but the array's own room.
extension Array<UInt8> {
    /// Appends a text that stands in the program.
    package mutating func append(literal text: StaticString) {
        unsafe append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Appends the text's UTF-8.
    package mutating func append(text: String) {
        // Every string has such storage here. A copy that might be changed would be counted twice.
        let isAppended: Void? = unsafe text.utf8.withContiguousStorageIfAvailable { unsafe append(contentsOf: $0) }
        if isAppended == nil { append(contentsOf: text.utf8) }
    }

    /// Appends a number in decimal digits.
    package mutating func append(decimal number: UInt64) {
        // No number of 64 bits has more digits.
        unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var (rest, start) = (number, digits.count)
            repeat {
                start -= 1
                unsafe digits[start] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
            } while rest > 0
            unsafe append(contentsOf: UnsafeBufferPointer(rebasing: digits[start...]))
        }
    }
}
