extension UInt64 {
    /// Sixteen hexadecimal digits: a node's name in answers.
    package var hexDigits: String {
        let digits = String(self, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
