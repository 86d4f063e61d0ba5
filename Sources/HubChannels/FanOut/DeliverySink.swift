package import HubCore

/// Output of one loop's engine: writes to the loop's connections. All calls come on the loop's thread.
package protocol DeliverySink: AnyObject {
    /// Writes joined frames to all of `slots`, which are slots of open connections. One call serves all connections with the same frames.
    /// The caller owns the bytes and reuses them after the call.
    /// - Parameter latestOnly: the frames that a newer frame of their line supersedes, in order.
    func deliver(
        _ frames: UnsafeRawBufferPointer, to slots: UnsafeBufferPointer<UInt32>, latestOnly: UnsafeBufferPointer<LatestOnlyFrame>)
    /// Writes whole frames to one connection.
    func send(_ frames: [UInt8], to connection: ConnectionID)
    /// Writes a channel's member list. This one frame may exceed a connection's limit for waiting bytes.
    func send(list: [UInt8], to connection: ConnectionID)
    /// Sends a close frame and ends the connection.
    func close(_ connection: ConnectionID, code: UInt16, reason: String)
    /// Begins to watch the connection for silence.
    func watchSilence(_ connection: ConnectionID, pingAfter: Duration, pongWithin: Duration)
}

extension DeliverySink {
    /// As any frame, for sinks without a limit.
    package func send(list: [UInt8], to connection: ConnectionID) { send(list, to: connection) }
}
