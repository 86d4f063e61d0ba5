extension StaticString {
    /// Whether `bytes` are the text's bytes.
    ///
    /// Compared by hand: the standard library's comparison of sequences takes four times the instructions, and a
    /// publish compares a dozen short names.
    package func isEqual(to bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        let count = utf8CodeUnitCount
        guard bytes.count == count else { return false }
        let own = unsafe utf8Start
        for index in 0..<count where unsafe bytes[index] != own[index] { return false }
        return true
    }
    /// Whether `text` begins with these bytes.
    package func begins(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            unsafe bytes.count >= utf8CodeUnitCount && isEqual(to: UnsafeBufferPointer(rebasing: bytes[..<utf8CodeUnitCount]))
        }
    }
}
