package import HubCore
import Synchronization

/// Traffic over one gateway's connections besides the requests: counters since the start.
package struct GatewayTraffic: Sendable, Equatable {
    /// Connections whose TLS handshake succeeded.
    package var connections = 0
    /// Connections that resumed an earlier TLS session, included in `connections`.
    package var resumedHandshakes = 0
    /// Connections that negotiated HTTP/1.1, included in `connections`.
    package var overHTTP1 = 0
    /// Streams opened beyond the limit known to the peer, or beyond the initial limit that a peer has to assume.
    package var streamsBeyondLimit = 0
    /// RST_STREAM frames from the peers, whatever their codes.
    package var resetsReceived = 0
    /// GOAWAY frames to the peers.
    package var goAwaysSent = 0

    package init() {}

    /// The control API's form.
    package var json: JSONValue {
        [
            "connections": .int(Int64(connections)), "resumed_handshakes": .int(Int64(resumedHandshakes)),
            "over_http1": .int(Int64(overHTTP1)), "streams_beyond_limit": .int(Int64(streamsBeyondLimit)),
            "resets_received": .int(Int64(resetsReceived)), "goaways_sent": .int(Int64(goAwaysSent)),
        ]
    }
}

/// Counts the traffic of one gateway's ports, whose threads share the counter.
final class TrafficCounter: Sendable {
    private let state = Mutex(GatewayTraffic())

    var traffic: GatewayTraffic { state.withLock { $0 } }

    func count(_ change: (inout GatewayTraffic) -> Void) { state.withLock { change(&$0) } }

    /// The HTTP session of a connection after its handshake; nil over plain TCP, or if memory is short.
    func session(_ connection: UInt64, over stream: TLSStream?, streamsMax: Int) -> (any HTTPSession)? {
        guard let stream else { return nil }
        let (isResumed, isHTTP1) = (stream.isResumed, stream.negotiatedProtocol != "h2")
        count { traffic in
            traffic.connections += 1
            if isResumed { traffic.resumedHandshakes += 1 }
            if isHTTP1 { traffic.overHTTP1 += 1 }
        }
        if isHTTP1 { return HTTP1Session(connection: connection) }
        return HTTP2Session(connection: connection, streamsMax: streamsMax, traffic: self)
    }
}
