package import PusherProtocol
internal import Synchronization

/// Bounds over all apps together. 0: none.
package struct ConnectionLimits: Sendable {
    /// Connections of all apps together.
    package var connectionsMax = 0
    /// WebSocket and HTTP connections from one address. All connections through an untrusted reverse proxy share its address.
    package var perAddressMax = 0
    /// Bounds on anonymous subscriptions.
    package var anonymous = AnonymousLimits()

    /// No bounds but those on anonymous subscriptions.
    package init() {}
}

/// The apps of one process, and the connection counts over all loops.
package final class AppDirectory: Sendable {
    private struct Counts {
        var byApp: [Int]
        var total = 0
        /// Kept only if addresses are limited.
        var byAddress: [String: Int] = [:]

        /// Whether the apps' connections are all connections.
        var isConsistent: Bool { byApp.allSatisfy { $0 >= 0 } && byApp.reduce(0, +) == total }

        mutating func release(_ address: String) {
            assert(byAddress[address, default: 0] > 0, "a connection of an address ends that has none")
            guard let count = byAddress[address] else { return }
            byAddress[address] = count > 1 ? count - 1 : nil
        }
    }

    /// The apps, each at its own index.
    package let apps: [App]
    let limits: ConnectionLimits
    private let byKey: [String: Int]
    private let byID: [String: Int]
    private let counts: Mutex<Counts>
    let anonymous: AnonymousMemory
    private let lastOrder = Atomic<UInt64>(0)

    /// - Parameter apps: with `index` equal to the position in the array.
    package init(_ apps: [App], limits: ConnectionLimits = ConnectionLimits()) {
        // An index is all that the engine compares: a wrong one would mix two apps' channels.
        precondition(apps.indices.allSatisfy { apps[$0].index == $0 }, "the apps' indices are \(apps.map(\.index))")
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
            assert(counts.isConsistent, "\(counts.total) connections, by app \(counts.byApp)")
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
            assert(counts.isConsistent, "\(counts.total) connections, by app \(counts.byApp)")
        }
    }

    /// Connections of the app on all loops. Any thread.
    package func connectionCount(_ app: App) -> Int { counts.withLock { $0.byApp[app.index] } }

    /// Next place in the process-wide order of cached events. Any thread.
    package func nextOrder() -> UInt64 { lastOrder.wrappingAdd(1, ordering: .relaxed).newValue }
}
