/// Bounds and habits of one `CurlMulti`. The defaults suit a push gateway.
package struct CurlOptions: Sendable {
    /// Where requests may go without TLS.
    package enum ClearText: Sendable {
        /// Only to this machine: simulators.
        case loopback
        /// Anywhere: webhooks whose address the operator wrote down as `http://`.
        case anywhere
    }

    /// Shown in the thread's name; at most 15 bytes reach the system.
    package var name: String
    /// Most calls inside libcurl at once over HTTP/2. Calls beyond it wait in the queue, because libcurl counts a
    /// transfer's time-out from the moment it is added, sent or not.
    package var inFlightMax = 100
    /// The same once a peer has answered over HTTP/1, where each call needs a connection of its own.
    package var inFlightMaxHTTP1 = 4
    /// Send one call alone over a new connection and open the window when it succeeds. APNs allows a single stream
    /// until the first request with a valid token has succeeded, and libcurl assumes a hundred before it has read the
    /// peer's settings.
    package var primesConnections = false
    /// Let fewer calls in after a 429 or 503. Off for a client that serves peers who know nothing of each other: one of them
    /// must not slow down the others.
    package var narrowsWhenThrottled = true
    /// A 429 speaks of one recipient, as APNs' does: it narrows nothing.
    package var is429OfOneRecipient = false
    /// A call to a host that is just being connected waits to learn whether the connection can be shared. Off where a silent
    /// answer to one call must not hold up another one to the same host.
    package var waitsForMultiplexing = true
    /// For `http://` URLs: speak HTTP/2 from the first byte. With `https://` the version is negotiated anyway.
    package var clearTextHTTP2 = false
    package var clearText = ClearText.loopback
    /// Connections per host and port; 0: as many as there are calls.
    package var connectionsPerHostMax = 1
    /// Idle connections kept over all hosts.
    package var connectionsCachedMax = 8
    /// Calls waiting in front of libcurl; one more is refused with `queueFull`.
    package var queueMax = 10_000
    /// How long a call may wait in the queue; then it fails with `waitedTooLong`.
    package var queueWaitMax = Duration.seconds(30)
    /// Name resolution, TCP and TLS together.
    package var connectTimeout = Duration.seconds(5)
    /// The whole call, counted from when it enters libcurl.
    package var totalTimeout = Duration.seconds(15)
    /// Idle connections older than this are not used again. libcurl's own 118 s would throw away connections that
    /// Apple wants kept for hours.
    package var connectionIdleMax = Duration.seconds(3600)
    /// Connections older than this take no new calls, so that load balancers get to move us.
    package var connectionLifetimeMax = Duration.seconds(8 * 3600)
    /// How long the kernel lets sent bytes go unacknowledged.
    package var tcpUserTimeout = Duration.seconds(15)
    package var dnsCacheTimeout = Duration.seconds(30)
    /// After so many time-outs in a row the connection is given up, because a black hole does not close it by itself.
    package var timeoutsBeforeRenewal = 3
    /// PEM file of the certificate authorities to trust instead of the system's; for simulators.
    package var caFile: String?
    /// Response headers to keep, lower case.
    package var answerHeaders: Set<String> = ["retry-after"]
    package var answerBodyBytesMax = 16 * 1024

    package init(name: String) { self.name = name }
}
