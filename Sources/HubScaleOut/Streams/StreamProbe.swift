/// A message that a node sends to itself through the stream, so as to know that what is said arrives. Nobody else takes it as news.
enum StreamProbe {
    /// First byte, which no message of a node has: theirs begin with a version.
    private static let mark: UInt8 = 0

    /// - Parameter sentAt: nanoseconds of the node's own clock.
    static func payload(sentAt: UInt64) -> [UInt8] { [mark] + (0..<8).reversed().map { UInt8(truncatingIfNeeded: sentAt >> (8 * $0)) } }

    /// When a probe was sent; nil for a message.
    static func sentAt(_ payload: ArraySlice<UInt8>) -> UInt64? {
        guard payload.count == 9, payload.first == mark else { return nil }
        return payload.dropFirst().reduce(0) { $0 << 8 | UInt64($1) }
    }
}
