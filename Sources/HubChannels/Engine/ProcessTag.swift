package import HubCore
package import PusherProtocol

/// Converts connections to socket ids and back, without a table.
///
/// A socket id is two numbers below 2^53. Each holds 32 bits of the connection's id and, above them, 20 bits of a keyed hash of that id.
/// So a client cannot derive another connection's id. Ids are never reused, not even by the next process on the same port.
package struct ProcessTag: Sendable {
    private let hash: SipHash

    private static let mask: UInt64 = 0xFFFF_FFFF
    private static let tagMask: UInt64 = 1 << 20 - 1
    /// Top bit for full length: readers of logs expect long socket ids.
    private static let top: UInt64 = 1 << 52

    /// - Parameters: 128 random bits, drawn once per process.
    package init(random: UInt64, _ more: UInt64 = 0) {
        hash = SipHash(key: (random, more))
    }

    /// The same id for every call with this connection.
    package func socketID(of connection: ConnectionID) -> SocketID {
        let tag = hash.hash(connection.rawValue)
        return SocketID(
            first: Self.top | (tag & Self.tagMask) << 32 | connection.rawValue >> 32,
            second: Self.top | (tag >> 20 & Self.tagMask) << 32 | connection.rawValue & Self.mask)
    }

    /// Nil for an id that this process did not issue.
    package func connection(of socketID: SocketID) -> ConnectionID? {
        let high = socketID.first & Self.mask
        let connection = ConnectionID(
            loop: Int(high >> 24), slot: Int(high & 0xFF_FFFF), generation: UInt32(truncatingIfNeeded: socketID.second))
        return self.socketID(of: connection) == socketID ? connection : nil
    }
}
