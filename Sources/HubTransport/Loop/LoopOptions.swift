/// How loops treat their connections. Values, set once at start.
package struct LoopOptions: Sendable {
    /// What TLS handshakes are answered with at first; nil: plain, for the whole life of the loops.
    package var certificate: ServerCertificate?
    /// Bytes one connection may have waiting beyond what libwebsockets holds of one write; past it, close code 4100.
    package var sendQueueBytesMax = 1 << 20
    /// Memory that all the connections of one loop which are behind may take together; past it, those furthest behind are closed with
    /// 4100. At least as much as one connection's.
    package var sendQueueBytesTotalMax = 256 << 20
    /// Longest WebSocket message taken in.
    package var messageBytesMax = 2 * 10_240 + 4_096
    /// Bytes of all the messages of one loop that have come in part; past it, the connection with the next part is closed with 4100.
    package var assembledBytesMax = 64 << 20
    /// Longest HTTP request body taken in.
    package var bodyBytesMax = 1 << 20
    /// Bytes of all the bodies that have come in part, over all loops, and of those from one address; past either, 503 for who adds to them.
    package var unfinishedBodiesBytesMax = 64 << 20
    package var unfinishedBodiesBytesPerAddressMax = 16 << 20
    /// Whose `X-Forwarded-For` counts.
    package var forwarding = Forwarding()
    /// The delegate is asked about each HTTP connection: `LoopDelegate.admitsConnection`.
    package var countsConnections = false
    /// How long a handshake, a request head or a body may take, in seconds.
    package var requestTimeoutSeconds = 10
    /// How long a close frame may wait for a peer that does not read, in ticks: one that was slow until now needs time to come to it.
    var closeTicksMax: UInt32 = 160
    /// Connections one loop has room for, HTTP included; the process's descriptor limit when nil.
    package var connectionsMax: Int?

    package init() {}

    /// Unit of the loop's clock and of every probe: finer needs more wake-ups of an idle server.
    package static let tickMilliseconds: UInt64 = 250
    /// The most bytes libwebsockets hands to the kernel in one go: a whole flushed batch.
    static let writeBytesMax = 1 << 17
    /// The most bytes read in one go: more than a TLS record holds (16,384). What is left of a record waits inside OpenSSL, where
    /// the event loop cannot see it, and on a foreign libuv loop libwebsockets comes back for it only once: the end of a longer
    /// body would wait for the next traffic.
    static let readBytesMax: UInt32 = 16_384 + 512
    /// Answers are written in pieces of this size. A reader that takes one in each time-out, 3 KB a second, is not cut off.
    static let answerPieceBytes = 1 << 15
    /// Longer bodies, and chunked ones, are asked about as soon as their head is there. None is refused for its length below it.
    package static let unaskedBodyBytesMax = 1 << 16
    /// How long a keep-alive HTTP connection may be idle.
    static let keepAliveSeconds = 75
    /// How long a peer may go on sending to a connection that has said its last word, in ticks.
    static let lingerTicks: UInt32 = 8
    /// How long a close frame may wait for its answer before the socket's end is sent, in ticks: less than a second.
    static let closeAnswerTicks: UInt32 = 3
    /// New connections a loop takes in during one turn: some milliseconds of handshakes and subscriptions.
    static let adoptionsPerTurnMax = 32
    /// How long a stopping loop waits for its connections to end, in ticks.
    static let stoppingTicksMax = 2
}
