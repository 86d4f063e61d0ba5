package import HubCore

/// What a WebSocket upgrade asked for.
package struct UpgradeRequest {
    /// Percent-decoded, without the query.
    package let path: String
    /// The app's key, which is the path's last piece.
    package let key: String
    package let query: HTTPQuery
    /// The `Origin` header; nil from native clients.
    package let origin: String?
    /// The `X-Forwarded-For` header.
    let forwardedFor: String?
}


/// Names one HTTP exchange whose answer comes later. Valid on any thread; answering one that has ended does nothing.
package struct HTTPReply: Sendable, Hashable {
    package let loop: Int
    let exchange: Int
    let serial: UInt64
}

/// How a WebSocket connection ended.
package enum ConnectionEnd: Sendable, Equatable {
    /// The peer sent a close frame; 1005: without a code.
    case closedByPeer(code: UInt16)
    /// The server sent its close frame first.
    case closedByServer
    /// The socket failed or was shut without a close frame: a network that changed, a process that died.
    case lost
}

/// What happens on one loop's connections: the engine above implements it. Every call is made on the loop's own thread, and
/// none may block.
package protocol LoopDelegate: AnyObject {
    /// A WebSocket upgrade is complete; the first frame may be sent. To refuse, send an error and close.
    func connectionOpened(_ connection: ConnectionID, request: UpgradeRequest)
    /// A whole text message, which is UTF-8. The bytes are the transport's and end with the call.
    func connection(_ connection: ConnectionID, received text: UnsafeRawBufferPointer)
    /// A whole binary message. The bytes end with the call.
    func connection(_ connection: ConnectionID, receivedBinary bytes: UnsafeRawBufferPointer)
    /// A frame came of which no other call tells: a fragment of a message that goes on, a PING, or a PONG to no PING of the loop's.
    func connectionReceivedFrame(_ connection: ConnectionID)
    /// A message grew past `LoopOptions.messageBytesMax`; it is dropped, and the delegate is expected to close.
    func connectionReceivedTooMuch(_ connection: ConnectionID)
    /// No PONG came in the time given to `Loop.probe`; the delegate is expected to close with 4201.
    func connectionIsSilent(_ connection: ConnectionID)
    /// The send queue's bound was exceeded; what waited is about to be dropped. The delegate is expected to close with 4100;
    /// the transport does it when the delegate has not.
    func connectionIsSlow(_ connection: ConnectionID)
    /// A PONG with a payload came; that of the loop's own probes is not reported. The bytes end with the call.
    func connection(_ connection: ConnectionID, receivedPong payload: UnsafeRawBufferPointer)
    /// The connection is gone; its id will never be valid again.
    func connectionClosed(_ connection: ConnectionID, end: ConnectionEnd)

    /// The body that may follow this head. Asked before any of a body is kept that does not come whole with one read.
    func bodyLimit(of head: HTTPRequest) -> BodyLimit
    /// Counts an HTTP connection from the address, or says that it has too many. Only with `LoopOptions.countsConnections`.
    func admitsConnection(from address: String) -> Bool
    /// A connection that was admitted so counts no longer.
    func connectionLeft(_ address: String)

    /// A whole HTTP request. Return the answer, or nil and give it to `Loop.respond` later.
    func request(_ request: HTTPRequest, reply: HTTPReply) -> HTTPResponse?

    /// Another thread asked for attention: drain the mailboxes.
    func loopWoken()
    /// Everything that was ready has been handled; the loop is about to wait. The place to flush what this turn collected.
    func loopTurnEnds()
    /// Behind `loopTurnEnds`: what this turn wrote is written.
    /// - Parameter now: nanoseconds of the monotonic clock.
    func loopTurnWritten(at now: UInt64)
}

extension LoopDelegate {
    package func connectionReceivedFrame(_ connection: ConnectionID) {}
    package func loopTurnWritten(at now: UInt64) {}
    package func bodyLimit(of head: HTTPRequest) -> BodyLimit { .bytes(.max) }
    package func admitsConnection(from address: String) -> Bool { true }
    package func connectionLeft(_ address: String) {}
}
