package import HubCore

/// The request of a WebSocket upgrade.
package struct UpgradeRequest {
    /// Percent-decoded, without the query.
    package let path: String
    /// The app's key, which is the path's last piece.
    package let key: String
    /// The URL's parameters, decoded.
    package let query: HTTPQuery
    /// The `Origin` header; nil from native clients.
    package let origin: String?
    /// The `X-Forwarded-For` header.
    let forwardedFor: String?
}

/// The end of a WebSocket connection.
package enum ConnectionEnd: Sendable, Equatable {
    /// The peer sent a close frame; 1005: without a code.
    case closedByPeer(code: UInt16)
    /// The server sent its close frame first.
    case closedByServer
    /// The socket failed or was shut without a close frame: a network that changed, a process that died.
    case lost
}

/// Events of one loop's connections. Every call is made on the loop's own thread, and none may block.
package protocol LoopDelegate: AnyObject {
    /// A WebSocket upgrade is complete; the first frame may be sent. To refuse, send an error and close.
    func connectionOpened(_ connection: ConnectionID, request: UpgradeRequest)
    /// A whole text message, which is UTF-8. The bytes are valid during the call only.
    func connection(_ connection: ConnectionID, received text: UnsafeRawBufferPointer)
    /// A whole binary message. The bytes are valid during the call only.
    func connection(_ connection: ConnectionID, receivedBinary bytes: UnsafeRawBufferPointer)
    /// A frame that no other call reports: a fragment of an unfinished message, a PING, or a PONG of the silence watch without a
    /// PING.
    func connectionReceivedFrame(_ connection: ConnectionID)
    /// A message grew past `LoopOptions.messageBytesMax`; it is dropped, and the delegate is expected to close.
    func connectionReceivedTooMuch(_ connection: ConnectionID)
    /// No PONG came in the time given to `Loop.watchSilence`; the delegate is expected to close with 4201.
    func connectionIsSilent(_ connection: ConnectionID)
    /// The send queue's bound was exceeded; the queue is about to be dropped. The delegate is expected to close with
    /// 4100; otherwise the transport does.
    func connectionIsSlow(_ connection: ConnectionID)
    /// A PONG arrived; those of the silence watch are not reported. The bytes are valid during the call only.
    func connection(_ connection: ConnectionID, receivedPong payload: UnsafeRawBufferPointer)
    /// The connection is gone; its id will never be valid again.
    func connectionClosed(_ connection: ConnectionID, end: ConnectionEnd)
    /// A socket is closed, and its memory free; not called for HTTP requests. A crowd that leaves at once is told gone first.
    func socketClosed()

    /// The limit of the body that may follow this head. Asked before any part is kept of a body that does not arrive
    /// whole in one read.
    func bodyLimit(of head: HTTPRequest) -> BodyLimit
    /// Counts an HTTP connection from the address, or returns false when the address has too many. Only with
    /// `LoopOptions.countsConnections`.
    func admitsConnection(from address: String) -> Bool
    /// Ends the count of an admitted connection.
    func connectionLeft(_ address: String)

    /// A whole HTTP request. Return the answer, or nil and answer via `Loop.respond` later.
    func request(_ request: HTTPRequest, reply: HTTPReply) -> HTTPResponse?

    /// Another thread woke the loop: drain the mailboxes.
    func loopWoken()
    /// Asked before a lone request is answered, and at the end of a turn that answered requests. False puts `loopTurnEnds` off, for some
    /// turns at most: further publishes share its writes.
    var hasFewWrites: Bool { get }
    /// Writes what a lone request published, before its answer. Called only while `hasFewWrites`.
    func writeAhead()
    /// All ready events are handled, and the loop is about to wait. The delegate flushes the turn's output here.
    func loopTurnEnds()
    /// Follows `loopTurnEnds`, after this turn's writes.
    /// - Parameter now: nanoseconds of the monotonic clock.
    func loopTurnWritten(at now: UInt64)
}

extension LoopDelegate {
    /// Counts nothing.
    package func socketClosed() {}
    /// Counts nothing.
    package func connectionReceivedFrame(_ connection: ConnectionID) {}
    /// Puts the writes off behind answers.
    package var hasFewWrites: Bool { false }
    /// Writes at the end of the turn.
    package func writeAhead() {}
    /// Measures nothing.
    package func loopTurnWritten(at now: UInt64) {}
    /// Allows every body within the transport's own bound.
    package func bodyLimit(of head: HTTPRequest) -> BodyLimit { .bytes(.max) }
    /// Admits every address.
    package func admitsConnection(from address: String) -> Bool { true }
    /// Counts nothing.
    package func connectionLeft(_ address: String) {}
}
