/// Limits and behaviour of one `CurlMulti`. The defaults suit a push gateway.
package struct CurlOptions: Sendable {
    /// Permission for requests without TLS.
    package enum ClearText: Sendable {
        /// Only to this machine, for simulators.
        case loopback
        /// To any host, for webhooks that the operator configured as `http://`.
        case anywhere
    }

    /// Name of the thread; the system keeps at most 15 bytes.
    package var name: String
    /// Calls inside libcurl at once over HTTP/2. Further calls wait in the queue, because libcurl counts a transfer's
    /// time-out from its addition, sent or not.
    package var inFlightMax = 100
    /// Calls inside libcurl at once after an answer over HTTP/1, where each call needs its own connection.
    package var inFlightMaxHTTP1 = 4
    /// Send one call alone over a new connection, and open the window after its success. APNs allows a single stream until a request
    /// with a valid token has succeeded. Before it has read the peer's settings, libcurl assumes a hundred streams.
    package var primesConnections = false
    /// Narrow the window after a 429 or 503. Off for a client of unrelated peers, because one of them must not slow down the others.
    package var narrowsWhenThrottled = true
    /// A 429 concerns one recipient, as with APNs, and does not narrow the window.
    package var is429OfOneRecipient = false
    /// A call to a host in the middle of connecting waits, in case the connection can be shared. Off if one silent peer must not
    /// delay another call to the same host.
    package var waitsForMultiplexing = true
    /// For `http://` URLs: HTTP/2 from the first byte. With `https://` the version is negotiated.
    package var clearTextHTTP2 = false
    /// Hosts that may be called without TLS.
    package var clearText = ClearText.loopback
    /// Connections per host and port; 0: one per call if needed.
    package var connectionsPerHostMax = 1
    /// Idle connections kept over all hosts.
    package var connectionsCachedMax = 8
    /// Calls waiting in front of libcurl. If exceeded, a call fails with `queueFull`.
    package var queueMax = 10_000
    /// Time in the queue after which a call fails with `waitedTooLong`.
    package var queueWaitMax = Duration.seconds(30)
    /// Name resolution, TCP and TLS together.
    package var connectTimeout = Duration.seconds(5)
    /// The whole call, from its entry into libcurl.
    package var totalTimeout = Duration.seconds(15)
    /// Age at which an idle connection is no longer used. libcurl's default of 118 s would close connections that
    /// Apple wants kept for hours.
    package var connectionIdleMax = Duration.seconds(3600)
    /// Age at which a connection takes no new calls, so that load balancers can move the client.
    package var connectionLifetimeMax = Duration.seconds(8 * 3600)
    /// Time that the kernel lets sent bytes go unacknowledged.
    package var tcpUserTimeout = Duration.seconds(15)
    /// Lifetime of a resolved address.
    package var dnsCacheTimeout = Duration.seconds(30)
    /// Consecutive time-outs after which connections are closed, because a black hole never closes one.
    package var timeoutsBeforeRenewal = 3
    /// PEM file of the certificate authorities to trust instead of the system's; for simulators.
    package var caFile: String?
    /// Off only for a request that holds no secret to a peer on this machine, whose certificate names another host.
    package var checksCertificates = true
    /// Response headers to keep, lower case.
    package var answerHeaders: Set<String> = ["retry-after"]
    /// Bytes of an answer's body to keep.
    package var answerBodyBytesMax = 16 * 1024

    /// The defaults, which suit a push gateway.
    package init(name: String) { self.name = name }
}
