/// Every bound of the simulators. They face whatever a test throws at them, so nothing a peer sends may grow without end.
package enum SimulatorLimits {
    /// Per listening port. At the limit the least useful connection makes room for the new one: an unfinished handshake,
    /// or the one that has been idle longest.
    package static let connectionsMax = 256
    static let listenBacklog: Int32 = 128
    static let handshakeMilliseconds: UInt64 = 10_000
    /// From a request's first byte to its last.
    static let requestMilliseconds: UInt64 = 30_000
    /// A peer that reads nothing while an answer waits for it.
    static let stalledWriteMilliseconds: UInt64 = 30_000
    /// APNs wants connections kept open for hours; without this, forgotten ones would hold their descriptors forever.
    static let idleMilliseconds: UInt64 = 3_600_000
    /// How long a closing connection waits for the peer's end, so that its last frames are not destroyed by a TCP reset.
    static let lingerMilliseconds: UInt64 = 2_000

    /// APNs' SETTINGS_MAX_HEADER_LIST_SIZE (docs/protocol.md, 9.6), counted as RFC 9113, 6.5.2 says.
    static let headerListBytesMax = 8_000
    static let headerCountMax = 100
    /// The head of an HTTP/1.1 request.
    static let requestHeadBytesMax = 16 * 1024
    /// Kept of a body; the rest is counted and thrown away.
    package static let bodyBytesKept = 64 * 1024
    /// Of one connection's unfinished requests together; bodies of `smallBodyBytes` are not counted, the streams' number
    /// bounds those.
    static let unfinishedBodyBytesMax = 4 * 1024 * 1024
    static let smallBodyBytes = 8 * 1024
    /// Beyond this a body is not even read to its end.
    static let bodyBytesMax = 1024 * 1024
    static let readBytes = 32 * 1024
    /// Output produced ahead of the socket; above it nothing more is read from that peer.
    static let outputBytesMax = 256 * 1024

    package static let recordsMax = 20_000
    /// Bytes of all recorded bodies and headers together.
    package static let recordedBytesMax = 64 * 1024 * 1024
    package static let faultsMax = 10_000
    package static let faultStepsMax = 100
    package static let delayMillisecondsMax = 600_000
    package static let faultBodyBytesMax = 1024 * 1024
    /// nghttp2 sends no longer header block than 64 KiB.
    package static let faultHeaderBytesMax = 60_000
    static let delayedRepliesMax = 20_000
    static let accessTokensMax = 1_000
    static let verifiedProviderTokensMax = 64
    static let tokenBytesMax = 4_096
    package static let streamsMax = 10_000
}
