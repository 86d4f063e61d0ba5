internal import CLibWebSockets
package import HubCore

/// Addresses of connections and requests, and the connections per address.
extension Loop {
    /// The address that the request counts for, as text without a port; empty when unknown. Valid while the exchange is
    /// open.
    package func remoteAddress(of reply: HTTPReply) -> String {
        assertOnThread()
        guard let connection = http.connection(of: reply), let exchange = connection.exchange else { return "" }
        return unsafe remoteAddress(of: connection.wsi, forwardedFor: exchange.forwardedFor)
    }

    /// As above, of a WebSocket connection.
    package func remoteAddress(of connection: ConnectionID, _ upgrade: UpgradeRequest) -> String {
        assertOnThread()
        guard let wsi = unsafe state(connection)?.pointee.wsi else { return "" }
        return unsafe remoteAddress(of: wsi, forwardedFor: upgrade.forwardedFor)
    }

    func remoteAddress(of wsi: OpaquePointer, _ request: HTTPRequest) -> String {
        unsafe remoteAddress(of: wsi, forwardedFor: request.headers[Self.forwardedFor])
    }

    private func remoteAddress(of wsi: OpaquePointer, forwardedFor: String?) -> String {
        let peer = unsafe peers[UInt(bitPattern: wsi)] ?? socketAddress(of: wsi)
        return forwardedFor.map { options.forwarding.address(peer: peer, header: $0) } ?? peer
    }

    private func socketAddress(of wsi: OpaquePointer) -> String {
        var (high, low): (UInt64, UInt64) = (0, 0)
        return unsafe tandem_lws_peer_address(wsi, &high, &low) ? IPAddress(high: high, low: low).description : ""
    }

    // MARK: Counting

    /// Counts an HTTP connection for the address of its request. A direct connection counts until it ends. A trusted
    /// proxy's connection counts for each request's address until the answer. False when the address has too many.
    func countConnection(_ wsi: OpaquePointer, _ request: HTTPRequest) -> Bool {
        guard options.countsConnections, let delegate else { return true }
        let address = unsafe remoteAddress(of: wsi, request)
        if counted[UInt(bitPattern: wsi)] == address { return true }
        unsafe uncountConnection(wsi)
        guard delegate.admitsConnection(from: address) else { return false }
        counted[UInt(bitPattern: wsi)] = address
        return true
    }

    func uncountConnection(_ wsi: OpaquePointer) {
        if let address = counted.removeValue(forKey: UInt(bitPattern: wsi)) { delegate?.connectionLeft(address) }
    }

    /// Ends the count of a forwarded request.
    func uncountForwarded(_ wsi: OpaquePointer, _ exchange: HTTPExchange) {
        guard options.countsConnections, exchange.forwardedFor != nil else { return }
        unsafe uncountConnection(wsi)
    }
}
