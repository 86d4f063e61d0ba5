internal import PusherProtocol
internal import Synchronization

/// How much memory subscriptions may take for which nobody has signed.
package struct AnonymousLimits: Sendable {
    /// Bytes of one subscription beside its channel's name, about: entries at the connection, on its loop and at the channel's home.
    package var fixedBytes = 768
    /// Bytes of one connection. Its largest number of subscriptions fits, with the longest names.
    package var perConnectionMax = 1 << 20
    /// Bytes that each connection may have without being counted with others: some ten channels, and not much beside the connection itself.
    package var freePerConnection = 8 << 10
    /// Bytes of all connections from one address, and of all together, beyond the free ones.
    package var perAddressMax = 128 << 20
    package var totalMax = 512 << 20

    package init() {}
}

/// Bytes of anonymous subscriptions over all loops. Only connections beyond their free bytes ask.
final class AnonymousMemory: Sendable {
    private struct Counts {
        var total = 0
        var byAddress: [String: Int] = [:]
    }

    private let limits: AnonymousLimits
    private let counts = Mutex(Counts())

    init(_ limits: AnonymousLimits) {
        self.limits = limits
    }

    var total: Int { counts.withLock { $0.total } }

    /// - Returns: what there is too much of; nil: taken.
    func take(_ bytes: Int, by address: String) -> String? {
        counts.withLock { counts in
            if counts.total + bytes > limits.totalMax { return "of this server" }
            if counts.byAddress[address, default: 0] + bytes > limits.perAddressMax { return "from this address" }
            counts.total += bytes
            counts.byAddress[address, default: 0] += bytes
            return nil
        }
    }

    func giveBack(_ bytes: Int, by address: String) {
        counts.withLock { counts in
            counts.total -= bytes
            let rest = counts.byAddress[address, default: 0] - bytes
            counts.byAddress[address] = rest > 0 ? rest : nil
        }
    }
}

/// Subscriptions to public channels by who has not signed in cost nobody but the hub anything, so they are bounded in bytes.
extension ChannelEngine {
    /// - Returns: the bytes that the subscription is counted with.
    /// - Throws: why it is one too many.
    func takeAnonymous(_ name: ChannelName, by connection: Connection) throws(ProtocolError) -> Int {
        guard !name.kind.requiresAuthorization, connection.user == nil else { return 0 }
        let limits = directory.limits.anonymous
        let bytes = name.text.utf8.count + limits.fixedBytes
        guard connection.anonymousBytes + bytes <= limits.perConnectionMax else {
            throw ProtocolError(message: "Too many subscriptions of this connection: sign in, or use private channels")
        }
        let counted = max(0, connection.anonymousBytes + bytes - limits.freePerConnection) - max(0, connection.anonymousBytes - limits.freePerConnection)
        if counted > 0, let whose = directory.anonymous.take(counted, by: connection.address) {
            throw ProtocolError(message: "Too many subscriptions \(whose): sign in, or use private channels")
        }
        connection.anonymousBytes += bytes
        return bytes
    }

    func giveBackAnonymous(_ bytes: Int, by connection: Connection) {
        guard bytes > 0 else { return }
        let free = directory.limits.anonymous.freePerConnection
        let counted = max(0, connection.anonymousBytes - free) - max(0, connection.anonymousBytes - bytes - free)
        connection.anonymousBytes -= bytes
        if counted > 0 { directory.anonymous.giveBack(counted, by: connection.address) }
    }
}
