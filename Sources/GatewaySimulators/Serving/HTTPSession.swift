import HubCore

/// One connection's HTTP as a transformation of bytes, without sockets, TLS or a clock.
protocol HTTPSession: AnyObject {
    /// Takes bytes from the peer. False if the peer violated the protocol beyond recovery: flush the output and close.
    func receive(_ bytes: UnsafeBufferPointer<UInt8>, now: UInt64) -> Bool
    /// The next complete request in order of arrival. Handed out one at a time, because an answer may be a GOAWAY that leaves later
    /// requests unprocessed.
    func nextRequest() -> ReceivedRequest?
    /// Answers a request; ignored if its stream has gone.
    func perform(_ action: Reply.Action, stream: Int32)
    /// Appends output until `output` holds `limit` bytes or nothing is left. False on an internal failure.
    func produceOutput(into output: inout [UInt8], limit: Int) -> Bool
    /// Nothing more will be read or written.
    var isFinished: Bool { get }
    /// Requests begun and not yet answered.
    var openRequests: Int { get }
    /// Announces a new limit of concurrent streams, if the protocol has one.
    func announce(streamsMax: Int)
    /// Refuses new requests; those that arrived are still answered.
    func goAway(reason: String)
    /// Drops unfinished requests whose first byte came before this monotonic millisecond.
    func expireRequests(begunBefore moment: UInt64)
}
