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
///
/// Loops use a copy of the table (`ChannelEngine.apps`), which they renew when its version has changed. All other callers share this one.
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

    let limits: ConnectionLimits
    private let current: Mutex<AppTable>
    private let lastVersion = Atomic<UInt64>(0)
    private let counts: Mutex<Counts>
    let anonymous: AnonymousMemory
    private let lastOrder = Atomic<UInt64>(0)

    /// - Parameter apps: with `index` equal to the position in the array.
    package init(_ apps: [App], limits: ConnectionLimits = ConnectionLimits()) {
        current = Mutex(AppTable(apps))
        self.limits = limits
        anonymous = AnonymousMemory(limits.anonymous)
        counts = Mutex(Counts(byApp: Array(repeating: 0, count: apps.count)))
    }

    /// The apps in force. Any thread; a short lock.
    package var table: AppTable { current.withLock { $0 } }
    /// The apps in force, each at its own index, removed ones included.
    package var apps: [App] { table.apps }
    /// Keys are compared case-sensitively.
    package func app(key: String) -> App? { table.app(key: key) }
    /// App with this id, enabled or not.
    package func app(id: String) -> App? { table.app(id: id) }
    /// Number of changes so far. Any thread.
    var version: UInt64 { lastVersion.load(ordering: .acquiring) }

    /// Puts a table in force. The caller then posts `EngineMessage.appsChanged` to every loop. Any thread, one caller at a time.
    /// - Parameter next: has every index of the table before.
    package func replace(_ next: AppTable) {
        counts.withLock { $0.byApp += Array(repeating: 0, count: next.apps.count - $0.byApp.count) }
        current.withLock { current in
            precondition(zip(current.apps, next.apps).allSatisfy { $0.id == $1.id }, "an index of apps has changed its id")
            current = next
        }
        lastVersion.add(1, ordering: .releasing)
    }

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
