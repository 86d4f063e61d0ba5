import Dispatch
import HubCore
import Synchronization

/// One connection with a thread of its own, made when it is needed, and made again when it was lost.
final class PostgresLink: Sendable {
    /// Time for a call, unless it writes many rows, and unless the server is slow but answers others: see `PostgresPulse`.
    static let callMax: Duration = .milliseconds(900)
    /// Further time for each row that a call announces.
    static let perRow: Duration = .microseconds(100)

    private struct Slot {
        var connection: PostgresConnection?
    }

    private let queue: DispatchQueue
    /// Used on `queue` only; the lock is never waited for.
    private let slot = Mutex(Slot())
    private let address: String
    private let name: String
    private let outage: PostgresOutage
    private let alwaysTries: Bool
    private let writes: Bool

    /// - Parameters:
    ///   - name: shown in `pg_stat_activity`.
    ///   - alwaysTries: whether the link tries also while the others leave the server alone. The beats need it. Calls that come all the
    ///     time would take every turn to try, and find that this hub may not act.
    ///   - writes: whether a call that succeeds has committed something.
    init(address: String, name: String, outage: PostgresOutage, alwaysTries: Bool = false, writes: Bool = false) {
        self.writes = writes
        self.alwaysTries = alwaysTries
        self.address = address
        self.name = name
        self.outage = outage
        queue = DispatchQueue(label: "tandem.postgres.\(name)")
    }

    /// Runs `body` on the link's thread.
    /// - Parameters:
    ///   - duration: for everything, the connecting included.
    ///   - greeting: runs on a new connection before `body`.
    /// - Throws: the error of `body`. A lost connection is dropped, and the next call makes a new one.
    func run<Value: Sendable>(
        within duration: Duration = callMax,
        greeting: @escaping @Sendable (PostgresConnection, ContinuousClock.Instant) throws -> Void = { _, _ in },
        _ body: @escaping @Sendable (PostgresConnection, ContinuousClock.Instant) throws -> Value
    ) async throws -> Value {
        let deadline = ContinuousClock.now + duration
        return try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try self.runNow(deadline, greeting, body) }) }
        }
    }

    private func runNow<Value: Sendable>(
        _ deadline: ContinuousClock.Instant, _ greeting: @Sendable (PostgresConnection, ContinuousClock.Instant) throws -> Void,
        _ body: @Sendable (PostgresConnection, ContinuousClock.Instant) throws -> Value
    ) throws -> Value {
        try slot.withLock { slot throws in
            if slot.connection?.isOpen == false { slot.connection = nil }
            if !alwaysTries, let refusal = outage.refusal() {
                slot.connection = nil
                throw refusal
            }
            do {
                if slot.connection == nil {
                    let connection = try PostgresConnection(address: address, name: name, deadline: deadline, pulse: outage.pulse)
                    outage.connected()
                    try greeting(connection, deadline)
                    slot.connection = connection
                }
                guard let connection = slot.connection else { preconditionFailure("a link has made its connection") }
                let before = connection.roundTrips
                defer { outage.took(connection.roundTrips - before, isWriter: writes) }
                let value = try body(connection, deadline)
                outage.answered(hasWritten: writes)
                return value
            } catch let failure as PostgresFailure {
                // The next connection may lead to another server: after a failover this one takes no writes.
                if failure.isOfTheServer, failure.state != PostgresFailure.fenced { slot.connection = nil }
                if failure.isOfTheServer { outage.failed(failure) } else { outage.answered(hasWritten: false) }
                throw failure
            }
        }
    }

    /// Ends the connection, after all calls before.
    func close() async {
        await withCheckedContinuation { continuation in
            queue.async {
                self.slot.withLock { $0.connection = nil }
                continuation.resume()
            }
        }
    }
}
