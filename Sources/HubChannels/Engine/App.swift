internal import PusherProtocol
internal import Synchronization

/// Keys and limits of one application. A value, the same on every loop.
package struct App: Sendable {
    /// Position among the configured apps; key of the engine's tables.
    package let index: Int
    /// Digits.
    package let id: String
    /// Key to secret; several while keys are being rotated.
    package let secrets: [String: String]
    /// Key that signs the hub's own tokens and subscriptions; the first one in the configuration. Nil: the alphabetically first.
    package var signingKey: String?
    /// A disabled app refuses requests and connections.
    package var isEnabled = true
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
    }
}

/// Bounds over all apps together. 0: none.
package struct ConnectionLimits: Sendable {
    /// Connections of all apps together.
    package var connectionsMax = 0
    /// WebSocket and HTTP connections from one address. Behind an untrusted reverse proxy all connections share its address.
    package var perAddressMax = 0
    /// Bounds on anonymous subscriptions.
    package var anonymous = AnonymousLimits()

    package init() {}
}

/// The apps of one process, and the connection counts over all loops.
package final class AppDirectory: Sendable {
    private struct Counts {
        var byApp: [Int]
        var total = 0
        /// Kept only if addresses are limited.
        var byAddress: [String: Int] = [:]

        mutating func release(_ address: String) {
            guard let count = byAddress[address] else { return }
            byAddress[address] = count > 1 ? count - 1 : nil
        }
    }

    package let apps: [App]
    let limits: ConnectionLimits
    private let byKey: [String: Int]
    private let byID: [String: Int]
    private let counts: Mutex<Counts>
    let anonymous: AnonymousMemory
    private let lastOrder = Atomic<UInt64>(0)

    /// - Parameter apps: with `index` equal to the position in the array.
    package init(_ apps: [App], limits: ConnectionLimits = ConnectionLimits()) {
        self.apps = apps
        self.limits = limits
        anonymous = AnonymousMemory(limits.anonymous)
        byKey = Dictionary(apps.flatMap { app in app.secrets.keys.map { ($0, app.index) } }, uniquingKeysWith: { first, _ in first })
        byID = Dictionary(apps.map { ($0.id, $0.index) }, uniquingKeysWith: { first, _ in first })
        counts = Mutex(Counts(byApp: Array(repeating: 0, count: apps.count)))
    }

    /// Keys are compared case-sensitively.
    package func app(key: String) -> App? { byKey[key].map { apps[$0] } }
    /// App with this id, enabled or not.
    package func app(id: String) -> App? { byID[id].map { apps[$0] } }

    /// Counts one more connection of the app, unless a limit is exceeded. Any thread.
    /// - Parameter address: the peer's.
    /// - Returns: nil if counted; else the code that refuses the connection.
    func admit(_ app: App, address: String) -> CloseCode? {
        counts.withLock { counts in
            if limits.connectionsMax > 0, counts.total >= limits.connectionsMax { return .overCapacity }
            if limits.perAddressMax > 0, counts.byAddress[address, default: 0] >= limits.perAddressMax {
                return .tooManyFromAddress
            }
            if app.connectionsMax > 0, counts.byApp[app.index] >= app.connectionsMax { return .overConnectionQuota }
            counts.byApp[app.index] += 1
            counts.total += 1
            if limits.perAddressMax > 0 { counts.byAddress[address, default: 0] += 1 }
            return nil
        }
    }

    /// Counts one more connection without an app. Any thread.
    /// - Returns: false if the address has its maximum; nothing is counted then.
    package func admit(address: String) -> Bool {
        counts.withLock { counts in
            if limits.perAddressMax > 0, counts.byAddress[address, default: 0] >= limits.perAddressMax { return false }
            counts.byAddress[address, default: 0] += 1
            return true
        }
    }

    /// Ends the count of a connection that was admitted without an app. Any thread.
    package func release(address: String) {
        counts.withLock { $0.release(address) }
    }

    func release(_ app: App, address: String) {
        counts.withLock { counts in
            counts.byApp[app.index] -= 1
            counts.total -= 1
            if limits.perAddressMax > 0 { counts.release(address) }
        }
    }

    /// Connections of the app on all loops. Any thread.
    package func connectionCount(_ app: App) -> Int { counts.withLock { $0.byApp[app.index] } }

    /// Next place in the process-wide order of cached events. Any thread.
    package func nextOrder() -> UInt64 { lastOrder.wrappingAdd(1, ordering: .relaxed).newValue }
}
