package import HubCore

/// Where the engine of one loop writes: the loop's connections, seen from above. Every call is made on the loop's thread.
package protocol DeliverySink: AnyObject {
    /// Writes joined frames to all of `slots`, which are slots of open connections: one call for all that get the same frames in a turn.
    /// The bytes belong to the caller and are reused after the call.
    /// - Parameter latestOnly: those of the frames that a newer one of their line makes needless, in order.
    func deliver(
        _ frames: UnsafeRawBufferPointer, to slots: UnsafeBufferPointer<UInt32>, latestOnly: UnsafeBufferPointer<LatestOnlyFrame>)
    /// Writes whole frames to one connection.
    func send(_ frames: [UInt8], to connection: ConnectionID)
    /// Writes the one frame that tells a connection who is in a channel, which may be longer than all that may wait for a connection.
    func send(list: [UInt8], to connection: ConnectionID)
    /// Sends a close frame and ends the connection.
    func close(_ connection: ConnectionID, code: UInt16, reason: String)
    /// Begins watching the connection's silence.
    func probe(_ connection: ConnectionID, pingAfter: Duration, pongWithin: Duration)
}

extension DeliverySink {
    package func send(list: [UInt8], to connection: ConnectionID) { send(list, to: connection) }
}
