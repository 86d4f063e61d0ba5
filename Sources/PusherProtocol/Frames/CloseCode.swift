/// The reason why the server closes a connection. The code's range tells the client what to do:
///
/// - 4000...4099: do not come back unchanged. pusher-js stays away until the page reloads.
/// - 4100...4199: come back after a pause of a second or more.
/// - 4200...4299: come back at once.
///
/// Codes from 4300 on never close, because pusher-js would stay away for good. The two such codes go into a
/// `pusher:error` event, see `ServerEvent.error`. A `pusher:error` with the same code and text precedes every close,
/// because clients of protocol 5 and Pysher look only there.
package struct CloseCode: Hashable, Sendable {
    /// 4000 to 4299.
    package let code: UInt16
    /// At most `reasonBytesMax` bytes of UTF-8.
    package let reason: String

    /// RFC 6455, 5.5: a control frame carries 125 bytes, two of them the code.
    package static let reasonBytesMax = 123

    /// A reason that is too long is cut between characters.
    package init(code: UInt16, reason: String) {
        assert((4000...4299).contains(code), "close code \(code) tells clients nothing, or to stay away for good")
        self.code = code
        var reason = reason
        while reason.utf8.count > Self.reasonBytesMax { reason.removeLast() }
        self.reason = reason
    }

    /// The app takes no unencrypted connections; pusher-js reconnects at once over TLS.
    package static let tlsOnly = CloseCode(code: 4000, reason: "Application only accepts TLS connections, reconnect using wss://")
    /// No app has the key in the URL.
    package static let applicationDoesNotExist = CloseCode(code: 4001, reason: "Application does not exist")
    /// The app is switched off in the configuration.
    package static let applicationDisabled = CloseCode(code: 4003, reason: "Application disabled")
    /// The app's own limit. For a limit of this node use `overCapacity`, from which clients recover.
    package static let overConnectionQuota = CloseCode(code: 4004, reason: "Application is over connection quota")
    /// The URL is not `/app/{key}`.
    package static let pathNotFound = CloseCode(code: 4005, reason: "Path not found")
    /// The URL's protocol is no integer.
    package static let invalidVersion = CloseCode(code: 4006, reason: "Invalid version string format")
    /// The URL's protocol is none of `ProtocolVersion.accepted`.
    package static let unsupportedVersion = CloseCode(code: 4007, reason: "Unsupported protocol version")
    /// The origin is not allowed, or a connection that must sign in did not.
    package static let unauthorized = CloseCode(code: 4009, reason: "Connection is unauthorized")
    /// The backend ended all connections of the user; unlike `overCapacity` it is meant to last.
    package static let terminatedByApplication = CloseCode(code: 4009, reason: "You got disconnected by the app.")
    /// This node is full for now.
    package static let overCapacity = CloseCode(code: 4100, reason: "Over capacity")
    /// The address has reached its limit of connections.
    package static let tooManyFromAddress = CloseCode(code: 4100, reason: "Too many connections from this address")
    /// The peer reads more slowly than its channels publish.
    package static let slowConsumer = CloseCode(code: 4100, reason: "Too many unread events, reconnect")
    /// The peer exceeds the rate limit of frames.
    package static let tooManyFrames = CloseCode(code: 4100, reason: "Too many messages, reconnect and send fewer")
    /// Brings every browser back in the same instant: spread such closes over time.
    package static let restarting = CloseCode(code: 4200, reason: "Server is restarting, reconnect")
    /// The peer answered no ping in time.
    package static let pongNotReceived = CloseCode(code: 4201, reason: "Pong reply not received in time")
    /// Silent for a day without being able to answer pings.
    package static let inactive = CloseCode(code: 4202, reason: "Closed after inactivity")
}

/// Codes that stand only in `pusher:error` events, on a connection that stays open.
package enum ErrorCode {
    /// More client events in a second than the app allows.
    package static let clientEventRateExceeded = 4301
    /// A sign-in with too long a watchlist; its first users are watched.
    package static let watchlistLimitExceeded = 4302
}
