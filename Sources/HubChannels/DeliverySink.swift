package import HubCore

/// Where the engine of one loop writes: the loop's connections, seen from above. Every call is made on the loop's thread.
package protocol DeliverySink: AnyObject {
    /// Writes joined frames to all of `slots`, which are slots of open connections: one call per flushed channel. The bytes
    /// belong to the caller and are reused after the call.
    func deliver(_ frames: UnsafeRawBufferPointer, to slots: UnsafeBufferPointer<UInt32>)
    /// Writes whole frames to one connection.
    func send(_ frames: [UInt8], to connection: ConnectionID)
    /// Sends a close frame and ends the connection.
    func close(_ connection: ConnectionID, code: UInt16, reason: String)
    /// Begins watching the connection's silence.
    func probe(_ connection: ConnectionID, pingAfter: Duration, pongWithin: Duration)
}
