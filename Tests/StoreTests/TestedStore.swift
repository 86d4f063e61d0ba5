import HubStorage
import StoreTesting
import Testing

/// A store that the contract is tried on. PostgreSQL is tried where the environment has its address, as `postgres.sh` sets it.
enum TestedStore: String, CaseIterable, CustomTestStringConvertible {
    case sqlite = "SQLite"
    case postgres = "PostgreSQL"
    case pgbouncer = "PostgreSQL behind PgBouncer"

    /// Stores that this run can open.
    static var present: [TestedStore] { allCases.filter { $0 == .sqlite || $0.database != nil } }

    var testDescription: String { rawValue }

    private var database: TestDatabase? {
        switch self {
        case .sqlite: nil
        case .postgres: TestDatabase.direct
        case .pgbouncer: TestDatabase.pooled
        }
    }

    /// Opens an empty store, and closes it after `body`.
    func withEmptyStore(_ body: @Sendable (StoreContract.Store) async throws -> Void) async throws {
        guard let database else {
            let folder = try TemporaryFolder()
            let store = try SQLiteStore(path: folder.file(), time: TestClock())
            try await body(store)
            return try await store.close()
        }
        try await database.withTurn { address in
            let store = try await PostgresStore(address: address, time: TestClock())
            do {
                try await body(store)
            } catch {
                try? await store.close()
                throw error
            }
            try await store.close()
        }
    }
}
