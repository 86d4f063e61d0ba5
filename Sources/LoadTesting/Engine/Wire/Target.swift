internal import CLoadSockets

/// The server under load: its address, and how to connect.
package struct Target: Sendable {
    package let url: String
    package let host: String
    package let port: UInt16
    package let isSecure: Bool
    /// Prefix of every path, without a trailing `/`; often empty.
    package let prefix: String
    /// IPv4 in network order.
    let address: UInt32

    /// Ephemeral ports that one source address can use per target: Linux offers 28,232 by default, and some are always in use.
    package static let connectionsPerSource = 25_000
    /// 127.0.0.1 to 127.0.0.200, more than descriptors ever allow.
    package static let sourcesMax = 200

    /// - Parameter url: `ws://HOST[:PORT][/PREFIX]`, or the same with wss, http or https.
    /// - Throws: if the address is invalid, or its name has no IPv4 address.
    package init(_ url: String) throws(LoadError) {
        let known: [(scheme: String, secure: Bool)] = [("ws://", false), ("wss://", true), ("http://", false), ("https://", true)]
        guard let found = known.first(where: { url.hasPrefix($0.scheme) }) else {
            throw LoadError("--url is ws://HOST:PORT or wss://HOST:PORT, not \"\(url)\"", isUsage: true)
        }
        let rest = url.dropFirst(found.scheme.count)
        let slash = rest.firstIndex(of: "/") ?? rest.endIndex
        let authority = rest[..<slash]
        let colon = authority.lastIndex(of: ":")
        host = String(authority[..<(colon ?? authority.endIndex)])
        if let colon {
            guard let port = UInt16(authority[authority.index(after: colon)...]), port > 0 else {
                throw LoadError("the port of --url \"\(url)\" is no number from 1 to 65535", isUsage: true)
            }
            self.port = port
        } else {
            port = found.secure ? 443 : 80
        }
        guard !host.isEmpty else { throw LoadError("--url \"\(url)\" names no host", isUsage: true) }
        var prefix = String(rest[slash...])
        while prefix.hasSuffix("/") { prefix.removeLast() }
        self.prefix = prefix
        self.url = url
        isSecure = found.secure
        address = unsafe host.withCString { unsafe tandem_load_resolve($0) }
        guard address != 0 else { throw LoadError("--url: \(host) has no IPv4 address; write one, such as 127.0.0.1") }
    }

    func isSameServer(as other: Target) -> Bool { address == other.address && port == other.port }

    package var isLoopback: Bool { UInt8(truncatingIfNeeded: address) == 127 }
    /// For `Host:`.
    package var authority: String { "\(host):\(port)" }

    /// The source address of a connection. On loopback it changes every `connectionsPerSource` connections, because ports run out.
    func source(of number: Int) -> UInt32 {
        guard isLoopback, number >= Self.connectionsPerSource else { return 0 }
        let last = UInt32(1 + number / Self.connectionsPerSource % Self.sourcesMax)
        return 127 | last << 24
    }
}
