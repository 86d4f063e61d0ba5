package import HubCore
package import PusherProtocol

/// Turns connections into socket ids and back, without a table.
///
/// A socket id is two numbers below 2^53. Each carries 32 bits of the connection's id and, above them, bits that are random
/// per process: so an id is never reused, also not by the next process on the same port, and says nothing to anybody else.
package struct ProcessTag: Sendable {
    private let first: UInt64
    private let second: UInt64

    private static let bits: UInt64 = 20

    /// - Parameter random: drawn once per process; 40 bits of it are used.
    package init(random: UInt64) {
        // The top bit keeps the numbers at full length: readers of logs are used to long socket ids.
        first = (random & (1 << Self.bits - 1) | 1 << (Self.bits - 1)) << 32
        second = (random >> 20 & (1 << Self.bits - 1) | 1 << (Self.bits - 1)) << 32
    }

    package func socketID(of connection: ConnectionID) -> SocketID {
        SocketID(first: first | connection.rawValue >> 32, second: second | connection.rawValue & 0xFFFF_FFFF)
    }

    /// Nil for an id that this process did not give out.
    package func connection(of socketID: SocketID) -> ConnectionID? {
        let mask: UInt64 = 0xFFFF_FFFF
        guard socketID.first & ~mask == first, socketID.second & ~mask == second else { return nil }
        let high = socketID.first & mask
        return ConnectionID(loop: Int(high >> 24), slot: Int(high & 0xFF_FFFF), generation: UInt32(socketID.second & mask))
    }
}
