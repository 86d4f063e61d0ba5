internal import PusherProtocol
internal import Synchronization

/// Memory bounds for subscriptions without a signature.
package struct AnonymousLimits: Sendable {
    /// Approximate bytes per subscription in addition to its channel's name: entries at the connection, on its loop
    /// and at the channel's home.
    package var fixedBytes = 768
    /// Bytes per connection. The largest number of subscriptions fits, with the longest names.
    package var perConnectionMax = 1 << 20
    /// Bytes per connection that do not count towards `perAddressMax` and `totalMax`: about ten channels.
    package var freePerConnection = 8 << 10
    /// Bytes of all connections from one address, in excess of their free bytes.
    package var perAddressMax = 128 << 20
    /// Bytes of all connections together, in excess of their free bytes.
    package var totalMax = 512 << 20

    /// The defaults.
    package init() {}
}

/// Bytes of anonymous subscriptions over all loops. A connection within its free bytes never takes the lock.
final class AnonymousMemory: Sendable {
    private struct Counts {
        var total = 0
        var byAddress: [String: Int] = [:]

        /// Whether the addresses' bytes are the total. Adds up few addresses only.
        var isConsistent: Bool { total >= 0 && (byAddress.count > 64 || byAddress.values.reduce(0, +) == total) }
    }

    private let limits: AnonymousLimits
    private let counts = Mutex(Counts())

    init(_ limits: AnonymousLimits) {
        self.limits = limits
    }

    var total: Int { counts.withLock { $0.total } }

    /// - Returns: nil if the bytes were taken; else the bound that they exceed, as the end of an error message.
    func take(_ bytes: Int, by address: String) -> String? {
        counts.withLock { counts in
            if counts.total + bytes > limits.totalMax { return "of this server" }
            if counts.byAddress[address, default: 0] + bytes > limits.perAddressMax { return "from this address" }
            counts.total += bytes
            counts.byAddress[address, default: 0] += bytes
            assert(counts.isConsistent, "\(counts.total) bytes of \(counts.byAddress.count) addresses")
            return nil
        }
    }

    func giveBack(_ bytes: Int, by address: String) {
        counts.withLock { counts in
            counts.total -= bytes
            let rest = counts.byAddress[address, default: 0] - bytes
            assert(rest >= 0, "an address gives back \(-rest) bytes that it never took")
            counts.byAddress[address] = rest > 0 ? rest : nil
            assert(counts.isConsistent, "\(counts.total) bytes of \(counts.byAddress.count) addresses")
        }
    }
}

/// Anonymous subscriptions to public channels cost only the hub, so they are bounded in bytes.
extension ChannelEngine {
    /// - Returns: the bytes that the subscription counts for; 0 if it is not anonymous.
    /// - Throws: a refusal if a bound is exceeded.
    func takeAnonymous(_ name: ChannelName, by connection: Connection) throws(ProtocolError) -> Int {
        guard !name.kind.requiresAuthorization, connection.user == nil else { return 0 }
        let limits = directory.limits.anonymous
        let bytes = name.text.utf8.count + limits.fixedBytes
        guard connection.anonymousBytes + bytes <= limits.perConnectionMax else {
            throw ProtocolError(message: "Too many subscriptions of this connection: sign in, or use private channels")
        }
        let counted =
            max(0, connection.anonymousBytes + bytes - limits.freePerConnection)
            - max(0, connection.anonymousBytes - limits.freePerConnection)
        if counted > 0, let whose = directory.anonymous.take(counted, by: connection.address) {
            throw ProtocolError(message: "Too many subscriptions \(whose): sign in, or use private channels")
        }
        connection.anonymousBytes += bytes
        return bytes
    }

    func giveBackAnonymous(_ bytes: Int, by connection: Connection) {
        guard bytes > 0 else { return }
        assert(bytes <= connection.anonymousBytes, "\(bytes) of \(connection.anonymousBytes) bytes are given back")
        let free = directory.limits.anonymous.freePerConnection
        let counted = max(0, connection.anonymousBytes - free) - max(0, connection.anonymousBytes - bytes - free)
        connection.anonymousBytes -= bytes
        if counted > 0 { directory.anonymous.giveBack(counted, by: connection.address) }
    }
}
