import HubCore

/// One connection's HTTP, fed with bytes and asked for bytes: no sockets, no TLS, no clock of its own.
protocol HTTPSession: AnyObject {
    /// Takes what the peer sent. False when the peer broke the protocol beyond repair: flush what is left and close.
    func receive(_ bytes: UnsafeBufferPointer<UInt8>, now: UInt64) -> Bool
    /// The next complete request in order of arrival. One at a time, because the answer to one may be a GOAWAY behind
    /// which the later ones are not processed.
    func nextRequest() -> ReceivedRequest?
    /// Answers a request; one whose stream is gone meanwhile is left alone.
    func perform(_ action: Reply.Action, stream: Int32)
    /// Appends what is to be sent until `output` holds `limit` bytes or nothing is left. False on an internal failure.
    func produceOutput(into output: inout [UInt8], limit: Int) -> Bool
    /// Nothing more will be read or written.
    var isFinished: Bool { get }
    /// Requests begun and not yet answered.
    var openRequests: Int { get }
    /// Announces a new limit of concurrent streams, where the protocol has such a thing.
    func announce(streamsMax: Int)
    /// Says goodbye: no new requests, those that arrived are still answered.
    func goAway(reason: String)
    /// Gives up requests whose first byte came before this monotonic millisecond and whose last has not come.
    func expireRequests(begunBefore moment: UInt64)
}
