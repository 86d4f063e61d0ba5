import GRDB
package import HubCore
import HubDelivery

/// Sessions, participants, devices, events, deliveries and webhooks in one SQLite file.
///
/// One writer and several readers beside it (WAL). Every write goes through one `GroupCommit`: concurrent calls share a
/// transaction and thus one wait for the disk, and what depends on what is already there (who is joining, which sequence
/// comes next) is decided inside the transaction, alone. Reads see everything whose call has returned.
package final class SQLiteStore: Directory, DeliveryStore, WebhookStore, Sendable {
    /// What a returned write has survived.
    package enum Synchronous: String, Sendable {
        /// A crash of the process and a loss of power: the disk is waited for.
        case full = "FULL"
        /// A crash of the process. A loss of power may take the last transactions, and never more than those.
        case normal = "NORMAL"
    }

    let pool: DatabasePool
    let time: any TimeSource
    private let writes: GroupCommit<Database>
    private let commits = CommitWatch()
    let onUnreadableRow: @Sendable (StorageError) -> Void
    let leases = DeliveryLeases()
    let snapshots = SnapshotCache()
    let lists = RecipientLists()

    /// Opens the database file, creating it and its folder when they are missing.
    /// - Parameters:
    ///   - time: stamps new sessions and participants.
    ///   - writeLimits: the bounds of the write queue.
    ///   - onUnreadableRow: told of each stored row that this version cannot read, on any thread. A delivery is then `failed`
    ///     and says so in its outcome; of a fan-out, `FanoutStore` says what it counts as.
    package init(
        path: String, synchronous: Synchronous = .full, time: any TimeSource,
        writeLimits: GroupCommitLimits = GroupCommitLimits(),
        onUnreadableRow: @escaping @Sendable (StorageError) -> Void = { _ in }
    ) throws(StorageError) {
        let pool = try SQLiteFile.open(path: path, synchronous: synchronous)
        self.pool = pool
        self.time = time
        self.onUnreadableRow = onUnreadableRow
        let checkpoints = Checkpoints(pool: pool)
        writes = GroupCommit(limits: writeLimits, tidyUp: { await checkpoints.runIfDue() }) { [commits] calls in
            try await commits.watch {
                try await pool.write { db in
                    let before = db.totalChangesCount
                    defer { checkpoints.noteChanges(total: db.totalChangesCount) }
                    let results = try calls.map { try Self.perform($0, in: db) }
                    return (results, db.totalChangesCount > before)
                }
            }
        }
    }

    /// What the writer has done and what waits for it, for metrics.
    package var figures: GroupCommitFigures { writes.figures }

    /// Whether what is committed reaches the disk.
    package var health: StoreHealth { commits.health }

    /// Writes more than a few publishes take, to see whether the disk takes it, and removes it again.
    package func probe() async throws {
        try await write { db in
            try db.execute(sql: "INSERT OR REPLACE INTO lease (number, deliveries) VALUES (?, zeroblob(?))", arguments: [DeliveryLeases.probe, Self.probeBytes])
        }
        commits.recovered()
        try await write { db in try db.execute(sql: "DELETE FROM lease WHERE number = ?", arguments: [DeliveryLeases.probe]) }
    }

    private static let probeBytes = 262_144

    /// Waits for the writes that were accepted, then closes the file. Every later call fails.
    package func close() async throws {
        try await write { _ in }
        do { try pool.close() } catch let error as DatabaseError { throw StorageError(error) }
    }

    /// One call of a shared transaction, in a savepoint so that its failure is its own.
    private static func perform(_ call: GroupCommit<Database>.Call, in db: Database) throws -> Result<Void, any Error> {
        do {
            try db.inSavepoint {
                try call.perform(db)
                return .commit
            }
            return .success(())
        } catch {
            // A full disk or an I/O error can make SQLite roll back the whole transaction, and with it the calls before
            // this one. GRDB would fail the rest with "transaction was aborted"; this tells everybody why.
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

    /// Runs `work` on a snapshot of what is committed, beside the writer.
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

    /// For tests: how SQLite answers the query behind `openDeliveries`.
    package func openDeliveriesPlan() async throws -> [String] {
        try await read { db in
            try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN " + SQLiteStore.openDeliveriesSQL).map { $0["detail"] }
        }
    }

    /// For tests: how SQLite answers what is asked of fan-outs and scheduled publishes.
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

/// A value of a closed set from a text column.
/// - Throws: `StorageError.Code.unreadableRow`, naming the column.
/// - Parameter position: the column's place in the row; nil: it is looked up by its name.
func decodeColumn<Value: RawRepresentable<String>>(
    _ row: Row, _ column: String, at position: Int? = nil, of table: String
) throws(StorageError) -> Value {
    let text: String = if let position { row[position] } else { row[column] }
    guard let value = Value(rawValue: text) else {
        throw StorageError(.unreadableRow, "a row of the table `\(table)` has an unknown `\(column)`; repair or delete it")
    }
    return value
}
