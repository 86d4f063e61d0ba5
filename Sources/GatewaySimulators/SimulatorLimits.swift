/// Every bound of the simulators. Whatever a peer sends, nothing may grow without end.
package enum SimulatorLimits {
    /// Connections per port. At the limit the least useful one is closed: an unfinished handshake, or the one idle longest.
    package static let connectionsMax = 256
    static let listenBacklog: Int32 = 128
    static let handshakeMilliseconds: UInt64 = 10_000
    /// From a request's first byte to its last.
    static let requestMilliseconds: UInt64 = 30_000
    /// How long a peer may leave a waiting answer unread.
    static let stalledWriteMilliseconds: UInt64 = 30_000
    /// APNs wants connections kept open for hours; the bound frees the descriptors of forgotten ones.
    static let idleMilliseconds: UInt64 = 3_600_000
    /// How long a closing connection waits for the peer's end, so that no TCP reset destroys its last frames.
    static let lingerMilliseconds: UInt64 = 2_000

    /// APNs' SETTINGS_MAX_HEADER_LIST_SIZE (docs/protocol.md, 9.6), counted as RFC 9113, 6.5.2 says.
    static let headerListBytesMax = 8_000
    static let headerCountMax = 100
    /// Size of an HTTP/1.1 request's head.
    static let requestHeadBytesMax = 16 * 1024
    /// Bytes kept of a body; the rest is counted and dropped.
    package static let bodyBytesKept = 64 * 1024
    /// One connection's unfinished bodies together. Bodies up to `smallBodyBytes` are not counted, because the number of streams bounds
    /// them.
    static let unfinishedBodyBytesMax = 4 * 1024 * 1024
    static let smallBodyBytes = 8 * 1024
    /// Maximum of a body. A longer one is not read to its end.
    static let bodyBytesMax = 1024 * 1024
    static let readBytes = 32 * 1024
    /// Output produced ahead of the socket. If exceeded, nothing more is read from the peer.
    static let outputBytesMax = 256 * 1024

    package static let recordsMax = 20_000
    /// Bytes of all recorded bodies and headers together.
    package static let recordedBytesMax = 64 * 1024 * 1024
    package static let faultsMax = 10_000
    package static let faultStepsMax = 100
    package static let delayMillisecondsMax = 600_000
    package static let faultBodyBytesMax = 1024 * 1024
    /// nghttp2 sends header blocks of 64 KiB at most.
    package static let faultHeaderBytesMax = 60_000
    static let delayedRepliesMax = 20_000
    static let accessTokensMax = 1_000
    static let verifiedProviderTokensMax = 64
    static let tokenBytesMax = 4_096
    package static let streamsMax = 10_000
}
