internal import PusherProtocol
internal import Synchronization

/// One application of the hub as the engine needs it: its keys and limits. A value, the same on every loop.
package struct App: Sendable {
    /// Position among the configured apps; what the engine's tables are keyed by.
    package let index: Int
    /// Digits.
    package let id: String
    /// Key to secret; several while keys are being rotated.
    package let secrets: [String: String]
    /// The key that signs what the hub itself issues; the first in the configuration. Nil: the alphabetically first.
    package var signingKey: String?
    package var isEnabled = true
    /// 0: no limit.
    package var connectionsMax = 0
    package var clientEvents = true
    /// Per connection.
    package var clientEventsPerSecond = 10
    /// Whether subscribers are told how many they are.
    package var subscriptionCount = false
    package var presenceMembersMax = 100
    /// How long the members of a channel with more than 100 are not told that one of them left, because many are back by then.
    package var presenceLinger: Duration = .seconds(3)
    package var eventDataBytesMax = 10_240
    /// Told to clients.
    package var activityTimeoutSeconds = 120
    /// Inbound silence after which the server sends a PING, and how long it waits for the PONG.
    package var pingInterval: Duration = .seconds(15)
    package var pongTimeout: Duration = .seconds(10)
    /// Empty: every origin. Native clients, which send none, are always let in.
    package var allowedOrigins: [String] = []
    /// Whether signed-in users are told of the users whom they watch.
    package var watchlist = true
    /// What the app's webhooks are told of; empty when it has none.
    package var factKinds: ChannelFact.Kinds = []

    package init(index: Int, id: String, secrets: [String: String]) {
        self.index = index
        self.id = id
        self.secrets = secrets
    }
}

/// Bounds that concern all apps together. 0: none.
package struct ConnectionLimits: Sendable {
    package var connectionsMax = 0
    /// WebSocket and HTTP connections from one address. Behind a reverse proxy that is not trusted all come from one.
    package var perAddressMax = 0
    package var anonymous = AnonymousLimits()

    package init() {}
}

/// The apps of one process, and what is counted over all loops.
package final class AppDirectory: Sendable {
    private struct Counts {
        var byApp: [Int]
        var total = 0
        /// Kept only where addresses are limited.
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
    package func app(id: String) -> App? { byID[id].map { apps[$0] } }

    /// Counts one more connection of the app, or says why it cannot be let in, and then nothing is counted. Any thread.
    /// - Parameter address: the peer's.
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

    /// As above, of a connection without an app. Any thread.
    package func admit(address: String) -> Bool {
        counts.withLock { counts in
            if limits.perAddressMax > 0, counts.byAddress[address, default: 0] >= limits.perAddressMax { return false }
            counts.byAddress[address, default: 0] += 1
            return true
        }
    }

    /// A connection that was admitted without an app is gone. Any thread.
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

    /// The next place in the one order in which events are cached, whichever loop took them. Any thread.
    package func nextOrder() -> UInt64 { lastOrder.wrappingAdd(1, ordering: .relaxed).newValue }
}
