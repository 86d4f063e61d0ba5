package import HubCore
import HubDelivery
import Synchronization

/// Sessions, participants, devices, events, deliveries and webhooks in the schema `tandem` of a PostgreSQL database.
///
/// One link writes and several read. Every write goes through one `GroupCommit`, as in `SQLiteStore`. A server that answers nobody
/// fails each call after a second, and calls that come meanwhile at once. One that is slow has six.
package final class PostgresStore: HubStore, Sendable {
    /// Links that read.
    static let readersMax = 4

    let time: any TimeSource
    let onUnreadableRow: @Sendable (StorageError) -> Void
    let snapshots = SnapshotCache()
    let lists = PostgresLists()
    let recent = RecentFanouts()
    let known = KnownBits()
    let openPushes = OpenPushes()
    let numbers: TextNumbers
    /// Number of this process among all that used the store.
    let process: Int64
    /// This process among those that use the database.
    let node: PostgresNode
    /// As of the start.
    package let database: DatabaseFacts?
    private let beats: Task<Void, Never>
    /// Pushes that this process has leased and not answered, by number.
    let leases = Mutex<Set<Int64>>([])
    private let writer: PostgresWriter
    private let writes: GroupCommit<PostgresTransaction>
    private let readers: PostgresReaders
    private let upkeep: PostgresLink
    private let listener: PostgresListener
    private let outage = PostgresOutage()
    private let days = Mutex<Set<Int32>>([])

    /// Opens the database: connects, and brings the schema to this version.
    /// - Parameters:
    ///   - address: as libpq reads it, `postgres://user@host:5432/database?sslmode=verify-full`. Password file and environment count too.
    ///   - time: stamps new sessions and participants.
    ///   - isAlone: whether no other hub may work on the database; then the call waits for all partitions.
    ///   - onUnreadableRow: as of `SQLiteStore`.
    /// - Throws: `StorageError` with a sentence that never holds the address's password.
    package init(
        address: String, time: any TimeSource, isAlone: Bool = true, writeLimits: GroupCommitLimits = GroupCommitLimits(),
        onUnreadableRow: @escaping @Sendable (StorageError) -> Void = { _ in }
    ) async throws(StorageError) {
        self.time = time
        self.onUnreadableRow = onUnreadableRow
        let outage = outage
        upkeep = PostgresLink(address: address, name: "tandem upkeep", outage: outage)
        do {
            let known = try await upkeep.run(within: PostgresMigrator.durationMax) {
                try PostgresMigrator.migrate($0, $1) { time.wallMilliseconds }
            }
            database = known.facts
            days.withLock { $0 = known.days }
            let process = known.process
            func link(_ name: String, alwaysTries: Bool = false, writes: Bool = false) -> PostgresLink {
                let name = "tandem \(process) \(name)"
                return PostgresLink(address: address, name: name, outage: outage, alwaysTries: alwaysTries, writes: writes)
            }
            let node = PostgresNode(number: process, isAlone: isAlone, link: link("node", alwaysTries: true))
            if isAlone { try await node.ownAll() } else { try await node.join() }
            let writer = PostgresWriter(link: link("writer", writes: true), node: node)
            self.process = process
            self.node = node
            self.writer = writer
            numbers = TextNumbers(process: process)
            listener = PostgresListener(link: link("listener"))
            readers = PostgresReaders((1...Self.readersMax).map { link("reader \($0)") })
            writes = GroupCommit(limits: writeLimits) { calls in try await writer.write(calls, rows: calls.reduce(0) { $0 + $1.rows }) }
            beats = Task { await node.run() }
        } catch {
            throw Self.storageError(error)
        }
    }

    package func owns(_ partition: Int32) -> Bool { node.owns(partition) }
    package var ownedPartitions: Set<Int32> { node.confirmed }
    package var isCutOff: Bool { node.isCutOff }
    package func noteHearing(_ hears: @escaping @Sendable () -> Bool) { node.listen(hears) }
    package var processNumber: Int64 { process }

    /// The writer's counters and queue, for metrics.
    package var figures: GroupCommitCounters { writes.figures }

    /// Whether PostgreSQL takes writes.
    package var health: StoreHealth { outage.health }

    /// Calls `wake` whenever another program may have published in SQL, until the store is closed.
    package func listen(_ wake: @escaping @Sendable () -> Void) async { await listener.run(wake, freed: node.nudge) }

    package func handOver() async throws {
        try await write { _ in }
        do { try await node.handOver() } catch { throw Self.storageError(error) }
    }

    /// Counters of the work with PostgreSQL, for metrics.
    package var postgres: PostgresFigures? {
        var figures = node.figures
        figures.calls = outage.calls
        figures.isFailing = outage.health.isFailing
        return figures
    }

    /// Asks the server for a write, which is taken back.
    package func probe() async throws {
        try await write { tx in
            _ = try tx.query("INSERT INTO tandem.channel (app, name, sequence) VALUES ('', '', 0) ON CONFLICT (app, name) DO NOTHING")
        }
    }

    /// Waits for all accepted writes, then ends the connections.
    package func close() async throws {
        try? await write { _ in }
        beats.cancel()
        await listener.close()
        await node.close()
        await upkeep.close()
        await readers.close()
        await writer.close()
    }

    /// Days since 1970, rounded down.
    static func day(_ milliseconds: Int64) -> Int32 {
        let (quotient, remainder) = milliseconds.quotientAndRemainder(dividingBy: 86_400_000)
        return Int32(clamping: remainder < 0 ? quotient - 1 : quotient)
    }

    /// Runs `work` in a transaction that other calls may share. An error of `work` undoes its own writes.
    func write<Value: Sendable>(
        rows: Int = 1, _ work: @escaping @Sendable (PostgresTransaction) throws -> Value
    ) async throws -> Value {
        if let refusal = outage.quickRefusal { throw refusal }
        do {
            return try await writes.run(rows: rows, work)
        } catch let failure as PostgresFailure {
            throw StorageError(failure)
        }
    }

    /// Runs `work` once these days have their parts of the facts' tables.
    func write<Value: Sendable>(
        rows: Int = 1, days: Set<Int32>, _ work: @escaping @Sendable (PostgresTransaction) throws -> Value
    ) async throws -> Value {
        let missing = self.days.withLock { days.subtracting($0) }
        for day in missing.sorted() {
            do {
                try await upkeep.run { connection, deadline in
                    let tx = PostgresTransaction(connection, deadline: deadline)
                    tx.queue("BEGIN ISOLATION LEVEL READ COMMITTED")
                    try tx.query("SELECT tandem.make_day($1::bigint::integer)", [.int(Int64(day))])
                    try tx.commit()
                }
            } catch {
                throw Self.storageError(error)
            }
            self.days.withLock { _ = $0.insert(day) }
        }
        return try await write(rows: rows, work)
    }

    /// Waits for what is about to be taken back: a commit that failed for its caller may still be there, and nobody may see it.
    func takeBack() async throws {
        if writer.unknownCount > 0 { try await write { _ in } }
    }

    /// Runs `work` on one snapshot of the committed data, in parallel with the writer.
    func read<Value: Sendable>(
        within duration: Duration = PostgresLink.callMax, _ work: @escaping @Sendable (PostgresTransaction) throws -> Value
    ) async throws -> Value {
        try await takeBack()
        do {
            return try await readers.run(within: duration) { connection, deadline in
                try PostgresTransaction.run("REPEATABLE READ, READ ONLY", connection, deadline, work)
            }
        } catch {
            throw Self.translated(error)
        }
    }

    /// Runs `work` in a transaction of the upkeep's link, apart from the writer.
    func maintain<Value: Sendable>(_ work: @escaping @Sendable (PostgresTransaction) throws -> Value) async throws -> Value {
        do {
            return try await upkeep.run(within: PostgresMigrator.durationMax) { connection, deadline in
                try PostgresTransaction.run("READ COMMITTED", connection, deadline, work)
            }
        } catch {
            throw Self.translated(error)
        }
    }

    /// Forgets a day whose parts were dropped.
    func forget(day: Int32) { days.withLock { _ = $0.remove(day) } }

    private static func translated(_ error: any Error) -> any Error { (error as? PostgresFailure).map(StorageError.init) ?? error }

    private static func storageError(_ error: any Error) -> StorageError {
        (error as? StorageError) ?? (error as? PostgresFailure).map(StorageError.init)
            ?? StorageError(.database, "PostgreSQL: \(error)")
    }
}
