import Synchronization

/// Listens for events that other programs publish in SQL. One session, apart from the links that write and read.
final class PostgresListener: Sendable {
    /// Longest sleep without a notification: the net for notifications that were lost with their connection.
    private static let lookEvery: Duration = .seconds(1)

    private let link: PostgresLink
    private let isClosed = Mutex(false)

    init(link: PostgresLink) {
        self.link = link
    }

    /// Calls `wake` after each notification, and once a second, until `close`.
    func run(_ wake: @escaping @Sendable () -> Void) async {
        while !isClosed.withLock({ $0 }), !Task.isCancelled {
            do {
                try await link.run(
                    within: Self.lookEvery + .seconds(1),
                    greeting: { connection, deadline in
                        _ = try connection.run([PostgresStatement("LISTEN tandem_publish")], deadline: deadline)
                    }
                ) { connection, _ in try connection.waitForNotification(until: .now + Self.lookEvery) }
            } catch {
                do { try await Task.sleep(for: PostgresOutage.retryEvery) } catch { return }
            }
            wake()
        }
    }

    func close() async {
        isClosed.withLock { $0 = true }
        await link.close()
    }
}
