import Synchronization

/// Links that read in parallel, each used by one call at a time.
final class PostgresReaders: Sendable {
    private let links: [PostgresLink]
    /// Calls under way per link.
    private let loads: Mutex<[Int]>

    init(_ links: [PostgresLink]) {
        precondition(!links.isEmpty, "nobody would read")
        self.links = links
        loads = Mutex(Array(repeating: 0, count: links.count))
    }

    /// Runs `body` on the link with the fewest calls.
    func run<Value: Sendable>(
        within duration: Duration, _ body: @escaping @Sendable (PostgresConnection, ContinuousClock.Instant) throws -> Value
    ) async throws -> Value {
        let index = loads.withLock { loads in
            let index = loads.indices.min { loads[$0] < loads[$1] } ?? 0
            loads[index] += 1
            return index
        }
        defer { loads.withLock { $0[index] -= 1 } }
        return try await links[index].run(within: duration, body)
    }

    func close() async { for link in links { await link.close() } }
}
