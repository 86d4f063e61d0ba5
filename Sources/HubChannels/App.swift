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
    package var presenceMembersMax = 100
    package var eventDataBytesMax = 10_240
    /// Told to clients.
    package var activityTimeoutSeconds = 120
    /// Inbound silence after which the server sends a PING, and how long it waits for the PONG.
    package var pingInterval: Duration = .seconds(15)
    package var pongTimeout: Duration = .seconds(10)
    /// Empty: every origin. Native clients, which send none, are always let in.
    package var allowedOrigins: [String] = []

    package init(index: Int, id: String, secrets: [String: String]) {
        self.index = index
        self.id = id
        self.secrets = secrets
    }
}

/// The apps of one process, and how many connections each has over all loops.
package final class AppDirectory: Sendable {
    package let apps: [App]
    private let byKey: [String: Int]
    private let byID: [String: Int]
    private let connections: Mutex<[Int]>

    package init(_ apps: [App]) {
        self.apps = apps
        byKey = Dictionary(apps.flatMap { app in app.secrets.keys.map { ($0, app.index) } }, uniquingKeysWith: { first, _ in first })
        byID = Dictionary(apps.map { ($0.id, $0.index) }, uniquingKeysWith: { first, _ in first })
        connections = Mutex(Array(repeating: 0, count: apps.count))
    }

    /// Keys are compared case-sensitively.
    package func app(key: String) -> App? { byKey[key].map { apps[$0] } }
    package func app(id: String) -> App? { byID[id].map { apps[$0] } }

    /// Counts one more connection of the app; false when its limit is reached, and then nothing is counted. Any thread.
    func admit(_ app: App) -> Bool {
        connections.withLock { counts in
            if app.connectionsMax > 0, counts[app.index] >= app.connectionsMax { return false }
            counts[app.index] += 1
            return true
        }
    }

    func release(_ app: App) {
        connections.withLock { $0[app.index] -= 1 }
    }
}
