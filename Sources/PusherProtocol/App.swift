/// Keys and limits of one application. A value, the same on every loop.
package struct App: Sendable {
    /// Position among the configured apps; key of the engine's tables.
    package let index: Int
    /// Digits.
    package let id: String
    /// Key to secret; several while keys are being rotated.
    package let secrets: [String: String]
    /// The same secrets, prepared for signatures.
    package let signers: Signers
    /// Key that signs the hub's own tokens and subscriptions; the first one in the configuration. Nil: the alphabetically first.
    package var signingKey: String?
    /// A disabled app refuses requests and connections.
    package var isEnabled = true
    /// A removed app is unknown to everybody, and only keeps its index.
    package var isRemoved = false
    /// 0: no limit.
    package var connectionsMax = 0
    /// Whether clients may send events to each other.
    package var clientEvents = true
    /// Per connection.
    package var clientEventsPerSecond = 10
    /// Whether subscribers receive the number of subscribers.
    package var subscriptionCount = false
    /// Members per presence channel, unless its definition says otherwise.
    package var presenceMembersMax = 100
    /// Delay of a leave announcement in a channel with more than 100 members, because many members return within seconds.
    package var presenceLinger: Duration = .seconds(3)
    /// Bytes of a client event's data.
    package var eventDataBytesMax = 10_240
    /// Sent to clients with `pusher:connection_established`.
    package var activityTimeoutSeconds = 120
    /// Inbound silence after which the server sends a PING.
    package var pingInterval: Duration = .seconds(15)
    /// Time that a client has for its PONG.
    package var pongTimeout: Duration = .seconds(10)
    /// Empty: every origin. Native clients send no origin and are always accepted.
    package var allowedOrigins: [String] = []
    /// Whether signed-in users receive the status of the users on their watchlist.
    package var watchlist = true
    /// Facts that the app's webhooks subscribe to; empty without webhooks.
    package var factKinds: ChannelFact.Kinds = []

    package init(index: Int, id: String, secrets: [String: String]) {
        self.index = index
        self.id = id
        self.secrets = secrets
        signers = Signers(secrets)
    }
}
