import GRDB
package import HubCore
import HubDelivery

/// Sessions, participants, devices, events, deliveries and webhooks in one SQLite file.
///
/// One writer, with several readers in parallel (WAL). Every write goes through one `GroupCommit`, so concurrent calls share a transaction
/// and one wait for the disk. Decisions that depend on stored rows (a joining participant, the next sequence) are made inside the
/// transaction. Reads see the effects of every call that has returned.
package final class SQLiteStore: HubStore, Sendable {
    /// Failures that a returned write survives.
    package enum Synchronous: String, Sendable {
        /// A crash of the process and a power loss: every commit waits for the disk.
        case full = "FULL"
        /// A crash of the process. A power loss may take the last transactions.
        case normal = "NORMAL"
    }

    let pool: DatabasePool
    let time: any TimeSource
    private let writes: GroupCommit<Database>
    private let commits = CommitWatch()
    private let checkpoints: Checkpoints
    let onUnreadableRow: @Sendable (StorageError) -> Void
    let leases = PushLeases()
    let snapshots = SnapshotCache()
    let lists = RecipientLists()
    let rosters = RosterCache()

    /// Opens the database file. Creates the file and its folder if missing.
    /// - Parameters:
    ///     - time: stamps new sessions and participants.
    ///     - writeLimits: the bounds of the write queue.
    ///     - onUnreadableRow: called on any thread for each stored row that this version cannot read. Such a delivery becomes `failed` with
    ///     the error as its outcome; `RecipientStore` documents the effect for a fan-out.
    package init(
        path: String, synchronous: Synchronous = .full, time: any TimeSource,
        writeLimits: GroupCommitLimits = GroupCommitLimits(),
        onUnreadableRow: @escaping @Sendable (StorageError) -> Void = { _ in }
    ) throws(StorageError) {
        let pool = try SQLiteFile.open(path: path, synchronous: synchronous)
        self.pool = pool
        pool.add(transactionObserver: rosters, extent: .databaseLifetime)
        self.time = time
        self.onUnreadableRow = onUnreadableRow
        let checkpoints = Checkpoints(pool: pool)
        self.checkpoints = checkpoints
        writes = GroupCommit(limits: writeLimits, tidyUp: { await checkpoints.runIfDue() }) { [commits] calls in
            try await commits.watch {
                try await pool.writeWithoutTransaction { db in
                    let before = db.totalChangesCount
                    defer { checkpoints.noteChanges(total: db.totalChangesCount) }
                    let results = try Self.perform(calls, in: db)
                    let isAnyKept = results.contains { if case .success = $0 { true } else { false } }
                    return (results, isAnyKept && db.totalChangesCount > before)
                }
            }
        }
    }

    /// The writer's counters and queue, for metrics.
    package var figures: GroupCommitCounters { writes.figures }

    /// Whether commits reach the disk.
    package var health: StoreHealth { commits.health }

    /// Nobody else writes to the file.
    package func listen(_ wake: @escaping @Sendable () -> Void) async {}

    /// Tests the disk: writes more than a few publishes need, then removes it.
    package func probe() async throws {
        try await write { db in
            try db.execute(
                sql: "INSERT OR REPLACE INTO lease (number, deliveries) VALUES (?, zeroblob(?))",
                arguments: [PushLeases.probe, Self.probeBytes])
        }
        commits.recovered()
        try await write { db in try db.execute(sql: "DELETE FROM lease WHERE number = ?", arguments: [PushLeases.probe]) }
    }

    private static let probeBytes = 262_144

    /// Waits for all accepted writes, then closes the file. Every later call fails.
    package func close() async throws {
        try await write { _ in }
        checkpoints.end()
        do { try pool.close() } catch let error as DatabaseError { throw StorageError(error) }
    }

    /// Runs the calls in one transaction.
    private static func perform(_ calls: [GroupCommit<Database>.Call], in db: Database) throws -> [Result<Void, any Error>] {
        var results: [Result<Void, any Error>] = []
        try db.inTransaction {
            // A call that has the transaction to itself needs no savepoint.
            let isShared = calls.count > 1
            for call in calls { results.append(try perform(call, isShared: isShared, in: db)) }
            if !isShared, case .failure? = results.first { return .rollback }
            return .commit
        }
        return results
    }

    /// Runs one call, in a savepoint where others share the transaction, so that its failure stays its own.
    private static func perform(
        _ call: GroupCommit<Database>.Call, isShared: Bool, in db: Database
    ) throws -> Result<Void, any Error> {
        do {
            if isShared {
                try db.inSavepoint {
                    try call.perform(db)
                    return .commit
                }
            } else {
                try call.perform(db)
            }
            return .success(())
        } catch {
            // A full disk or an I/O error can roll back the whole transaction, earlier calls included. GRDB would fail the rest with
            // "transaction was aborted"; this error gives every call the cause.
            guard db.isInsideTransaction else { throw error }
            return .failure(error)
        }
    }

    /// Runs `work` in a transaction that other calls may share.
    func write<Value: Sendable>(
        rows: Int = 1, _ work: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        do {
            return try await writes.run(rows: rows, work)
        } catch let error as DatabaseError {
            throw StorageError(error)
        }
    }

    /// Runs `work` on a snapshot of the committed data, in parallel with the writer.
    func read<Value: Sendable>(_ work: @Sendable (Database) throws -> Value) async throws -> Value {
        do {
            return try await pool.read(work)
        } catch let error as DatabaseError {
            throw StorageError(error)
        }
    }
}

extension SQLiteStore {
    /// For tests: the writer's `PRAGMA synchronous` (1 normal, 2 full) and journal mode.
    package func durability() async throws -> (synchronous: Int, journalMode: String) {
        try await write { db in
            (try Int.fetchOne(db, sql: "PRAGMA synchronous") ?? -1, try String.fetchOne(db, sql: "PRAGMA journal_mode") ?? "")
        }
    }

    /// For tests: SQLite's plan for the query of `openDeliveries`.
    package func openDeliveriesPlan() async throws -> [String] {
        try await read { db in
            try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN " + SQLiteStore.openDeliveriesSQL).map { $0["detail"] }
        }
    }

    /// For tests: SQLite's query plans for fan-outs and scheduled publishes.
    package func fanoutPlans() async throws -> [String: [String]] {
        let queries = [
            "open": SQLiteStore.openFanoutsSQL, "missed": SQLiteStore.missedSQL, "own": SQLiteStore.ownEventsSQL,
            "large": SQLiteStore.largeEventsSQL, "due": SQLiteStore.dueScheduledSQL, "scheduled": SQLiteStore.scheduledOfAppSQL,
            "next": SQLiteStore.nextScheduledSQL,
        ]
        return try await read { db in
            try queries.mapValues { sql in
                let statement = try db.makeStatement(sql: "EXPLAIN QUERY PLAN " + sql)
                // The plan does not depend on the values.
                let values = Array(repeating: Int64?.none, count: sql.count { $0 == "?" })
                return try Row.fetchAll(statement, arguments: StatementArguments(values)).map { $0["detail"] }
            }
        }
    }
}

/// A value of a closed set, read from a text column.
/// - Throws: `StorageError.Code.unreadableRow`, which names the column.
/// - Parameter position: the column's index in the row; nil looks it up by name.
func decodeColumn<Value: RawRepresentable<String>>(
    _ row: Row, _ column: String, at position: Int? = nil, of table: String
) throws(StorageError) -> Value {
    let text: String = if let position { row[position] } else { row[column] }
    guard let value = Value(rawValue: text) else {
        throw StorageError(.unreadableRow, "a row of the table `\(table)` has an unknown `\(column)`; repair or delete it")
    }
    return value
}
