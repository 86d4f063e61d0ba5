internal import CLibWebSockets
package import HubCore

/// Addresses of connections and requests, and the connections per address.
extension Loop {
    /// The address that the request counts for, as text without a port; empty when unknown. Valid while the exchange is
    /// open.
    package func remoteAddress(of reply: HTTPReply) -> String {
        assertOnThread()
        guard let connection = http.connection(of: reply), let exchange = connection.exchange else { return "" }
        return unsafe remoteAddress(of: connection.socket, forwardedFor: exchange.forwardedFor)
    }

    /// As above, of a WebSocket connection.
    package func remoteAddress(of connection: ConnectionID, _ upgrade: UpgradeRequest) -> String {
        assertOnThread()
        guard let socket = unsafe state(connection)?.pointee.socket else { return "" }
        return unsafe remoteAddress(of: socket, forwardedFor: upgrade.forwardedFor)
    }

    func remoteAddress(of socket: SocketPointer, _ request: HTTPRequest) -> String {
        unsafe remoteAddress(of: socket, forwardedFor: request.headers[Self.forwardedFor])
    }

    private func remoteAddress(of socket: SocketPointer, forwardedFor: String?) -> String {
        let peer = unsafe peers[socket] ?? socketAddress(of: socket)
        return forwardedFor.map { options.forwarding.address(peer: peer, header: $0) } ?? peer
    }

    private func socketAddress(of socket: SocketPointer) -> String {
        var (high, low): (UInt64, UInt64) = (0, 0)
        return unsafe tandem_peer_address(socket.pointee.descriptor, &high, &low) ? IPAddress(high: high, low: low).description : ""
    }

    // MARK: Counting

    /// Counts an HTTP connection for the address of its request. A direct connection counts until it ends. A trusted
    /// proxy's connection counts for each request's address until the answer. False when the address has too many.
    func countConnection(_ socket: SocketPointer, _ request: HTTPRequest) -> Bool {
        guard options.countsConnections, let delegate else { return true }
        let address = unsafe remoteAddress(of: socket, request)
        if unsafe counted[socket] == address { return true }
        unsafe uncountConnection(socket)
        guard delegate.admitsConnection(from: address) else { return false }
        unsafe counted[socket] = address
        return true
    }

    func uncountConnection(_ socket: SocketPointer) {
        if let address = unsafe counted.removeValue(forKey: socket) { delegate?.connectionLeft(address) }
    }

    /// Ends the count of a forwarded request.
    func uncountForwarded(_ socket: SocketPointer, _ exchange: HTTPExchange) {
        guard options.countsConnections, exchange.forwardedFor != nil else { return }
        unsafe uncountConnection(socket)
    }
}
