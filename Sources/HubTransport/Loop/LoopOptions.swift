/// Limits and settings of loops. Values, set once at start.
package struct LoopOptions: Sendable {
    /// The first certificate for TLS handshakes; nil means no TLS, for the whole life of the loops.
    package var certificate: ServerCertificate?
    /// Most bytes that wait for one connection, besides the library's rest of one write. If exceeded, close code 4100.
    package var sendQueueBytesMax = 1 << 20
    /// Most bytes of memory that wait for all slow connections of one loop. If exceeded, those furthest behind are
    /// closed with 4100. At least as much as one connection's bound.
    package var sendQueueBytesTotalMax = 256 << 20
    /// Longest WebSocket message accepted, in bytes.
    package var messageBytesMax = 2 * 10_240 + 4_096
    /// Most bytes of all incomplete messages of one loop. If exceeded, the connection with the next part is closed with
    /// 4100.
    package var assembledBytesMax = 64 << 20
    /// Longest HTTP request body accepted, in bytes.
    package var bodyBytesMax = 1 << 20
    /// Most bytes of all incomplete request bodies of all loops. If exceeded, the next request that adds to them gets
    /// 503.
    package var unfinishedBodiesBytesMax = 64 << 20
    /// Most bytes of all incomplete request bodies of one address. If exceeded, 503 as well.
    package var unfinishedBodiesBytesPerAddressMax = 16 << 20
    /// The trusted proxies for `X-Forwarded-For`.
    package var forwarding = Forwarding()
    /// The delegate is asked about each HTTP connection: `LoopDelegate.admitsConnection`.
    package var countsConnections = false
    /// Seconds allowed for a handshake, a request head or a body.
    package var requestTimeoutSeconds = 10
    /// Ticks for which a close frame may wait for a peer that does not read. A slow peer needs time to reach it.
    var closeTicksMax: UInt32 = 160
    /// Ticks from an unanswered close frame to the socket's end: less than a second.
    var closeAnswerTicks: UInt32 = 3
    /// Connections one loop has room for, HTTP included; the process's descriptor limit when nil.
    package var connectionsMax: Int?

    /// The default of every limit; no TLS, and no trusted proxy.
    package init() {}

    /// Unit of the loop's clock and of the silence watch: a finer one needs more wake-ups of an idle server.
    package static let tickMilliseconds: UInt64 = 250
    /// The most bytes libwebsockets hands to the kernel in one go: a whole flushed batch.
    static let writeBytesMax = 1 << 17
    /// Most bytes per read: more than a TLS record holds (16,384). A record's unread rest waits inside OpenSSL, where
    /// the event loop cannot see it. On a foreign libuv loop libwebsockets returns to such a rest only once. A longer
    /// body's end would then wait for the next traffic.
    static let readBytesMax: UInt32 = 16_384 + 512
    /// Bytes per piece of an answer. A reader that takes one piece per time-out, 3 KB a second, is not cut off.
    static let answerPieceBytes = 1 << 15
    /// Bodies longer than this, in bytes, and chunked ones are judged as soon as their head is read. Shorter ones are
    /// never refused for their length.
    package static let unaskedBodyBytesMax = 1 << 16
    /// Seconds for which a keep-alive HTTP connection may be idle.
    static let keepAliveSeconds = 75
    /// Ticks for which a peer may go on sending to an ending connection.
    static let lingerTicks: UInt32 = 8
    /// New connections that a loop adopts per turn: some milliseconds of handshakes and subscriptions.
    static let adoptionsPerTurnMax = 32
    /// Ticks for which a stopping loop waits for its connections to end.
    static let stoppingTicksMax = 2
}
