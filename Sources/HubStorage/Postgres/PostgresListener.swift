import Synchronization

/// Listens for events that other programs publish in SQL, and for partitions that become free.
///
/// One session, apart from the links that write and read.
final class PostgresListener: Sendable {
    /// Longest sleep without a notification: the net for notifications that were lost with their connection.
    private static let lookEvery: Duration = .seconds(1)

    private let link: PostgresLink
    private let isClosed = Mutex(false)

    init(link: PostgresLink) {
        self.link = link
    }

    /// Calls `wake` after each notification, and once a second, until `close`.
    /// - Parameter freed: called when another node has handed its partitions over.
    func run(_ wake: @escaping @Sendable () -> Void, freed: @escaping @Sendable () -> Void) async {
        while !isClosed.withLock({ $0 }), !Task.isCancelled {
            do {
                let names = try await link.run(
                    within: Self.lookEvery + .seconds(1),
                    greeting: { connection, deadline in
                        let names = ["tandem_publish", PostgresNode.freed]
                        _ = try connection.run(names.map { PostgresStatement("LISTEN \($0)") }, deadline: deadline)
                    }
                ) { connection, _ in try connection.waitForNotification(until: .now + Self.lookEvery) }
                if names.contains(PostgresNode.freed) { freed() }
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
