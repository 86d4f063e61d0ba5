internal import Glibc

extension StaticString {
    /// Whether `bytes` are the text's bytes.
    ///
    /// The standard library's comparison of sequences takes many times the instructions, and a publish compares a dozen short names.
    package func isEqual(to bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        let count = utf8CodeUnitCount
        guard bytes.count == count else { return false }
        guard count > 0, let start = bytes.baseAddress else { return true }
        return unsafe memcmp(start, utf8Start, count) == 0
    }
    /// Whether `text` begins with these bytes.
    package func begins(_ text: String) -> Bool {
        // Every string has such storage here. A copy that might be changed would be counted twice.
        unsafe text.utf8.withContiguousStorageIfAvailable { bytes in
            unsafe bytes.count >= utf8CodeUnitCount && isEqual(to: UnsafeBufferPointer(rebasing: bytes[..<utf8CodeUnitCount]))
        } ?? false
    }
}
