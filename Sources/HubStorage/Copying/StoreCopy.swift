import Foundation
import GRDB
package import HubCore
import HubCrypto

/// Copies everything that a store keeps into an empty store of the other kind.
///
/// The target is written in one transaction. Before it is committed, it is read again, and each kind's count and checksum must be the
/// source's. So a copy that ends early leaves the target as it was. Both stores must have no hub. Opening a store brings its schema to
/// this version, as a start of the hub does; nothing else of the source changes.
package enum StoreCopy {
    /// Which store is read; the other one is written.
    package enum Direction: Sendable { case toPostgres, toSQLite }

    /// One kind of things, as it was copied.
    package struct Part: Sendable, Equatable {
        /// SQLite's name of the table.
        package let kind: String
        package let count: Int
        /// SHA-256 over all rows in their order, hexadecimal.
        package let checksum: String
    }

    /// State of a copy under way, for a progress bar.
    package struct Progress: Sendable {
        package let kind: String
        /// Things of this kind that are written, and all of them.
        package let done: Int
        package let total: Int
    }

    private static let rowsPerStep = 500
    /// Longest copy.
    private static let durationMax: Duration = .seconds(24 * 60 * 60)

    /// Copies a store.
    /// - Parameters:
    ///   - path: of the SQLite file.
    ///   - address: of the database, as libpq has it.
    ///   - progress: called after each step, on any thread.
    /// - Returns: all kinds, in the order in which they were copied.
    /// - Throws: `StorageError`: `inUse` while a hub runs on one of them, `notEmpty` for a target with rows.
    package static func run(
        _ direction: Direction, sqlite path: String, postgres address: String, time: any TimeSource,
        progress: @escaping @Sendable (Progress) -> Void = { _ in }
    ) async throws -> [Part] {
        if direction == .toPostgres, !FileManager.default.fileExists(atPath: path) {
            throw StorageError(
                .notWritable, "there is no store at \(path); name the file of the hub's data, such as sqlite:./data/tandem.db")
        }
        let lock = try StoreLock(store: path)
        defer { withExtendedLifetime(lock) {} }
        let sqlite = try SQLiteStore(path: path, time: time)
        let postgres = try await PostgresStore(address: address, time: time)
        do {
            let parts = try await copy(direction, sqlite, postgres, address, progress)
            try await postgres.close()
            try await sqlite.close()
            return parts
        } catch {
            try? await postgres.close()
            try? await sqlite.close()
            throw error
        }
    }

    private static func copy(
        _ direction: Direction, _ sqlite: SQLiteStore, _ postgres: PostgresStore, _ address: String,
        _ progress: @escaping @Sendable (Progress) -> Void
    ) async throws -> [Part] {
        let (numbers, node) = (postgres.numbers, postgres.node)
        let work: @Sendable (Database) throws -> [Part] = { db in
            let deadline = ContinuousClock.now + durationMax
            let connection = try PostgresConnection(address: address, name: "tandem copy", deadline: deadline)
            let level = direction == .toPostgres ? "READ COMMITTED" : "REPEATABLE READ, READ ONLY"
            return try PostgresTransaction.run(level, connection, deadline) { tx in
                // A copy that was stopped and replaced by a hub ends here.
                if direction == .toPostgres { _ = try tx.all([try node.fence()]) }
                let (file, database) = (SQLiteCopySide(db), PostgresCopySide(tx, numbers: numbers))
                return switch direction {
                case .toPostgres:
                    try copy(
                        count: file.count, each: file.each, targetCount: database.count, write: database.write,
                        readAgain: PostgresCopySide(tx, numbers: numbers).each, progress)
                case .toSQLite:
                    try copy(
                        count: database.count, each: database.each, targetCount: file.count, write: file.write, readAgain: file.each,
                        progress)
                }
            }
        }
        do {
            return switch direction {
            case .toPostgres: try await sqlite.pool.read(work)
            case .toSQLite: try await sqlite.pool.write(work)
            }
        } catch let error as DatabaseError {
            throw StorageError(error)
        } catch let failure as PostgresFailure {
            throw StorageError(failure)
        }
    }

    private static func copy(
        count: (CopyKind) throws -> Int, each: (CopyKind, (CopyRecord) throws -> Void) throws -> Void,
        targetCount: (CopyKind) throws -> Int, write: @escaping (CopyKind, [CopyRecord]) throws -> Void,
        readAgain: (CopyKind, (CopyRecord) throws -> Void) throws -> Void, _ progress: @escaping (Progress) -> Void
    ) throws -> [Part] {
        for kind in CopyKind.allCases where kind != .counter {
            let known = try targetCount(kind)
            guard known == 0 else {
                throw StorageError(
                    .notEmpty, "the target has \(known) rows in \(kind.rawValue); copy into a store that no hub has used, and start over")
            }
        }
        var parts: [Part] = []
        for kind in CopyKind.allCases {
            let total = try count(kind)
            var (sum, done, waiting) = (Checksum(), 0, [CopyRecord]())
            func flush() throws {
                if !waiting.isEmpty { try write(kind, waiting) }
                done += waiting.count
                waiting.removeAll(keepingCapacity: true)
                progress(Progress(kind: kind.rawValue, done: done, total: total))
            }
            try each(kind) { record in
                sum.add(record)
                waiting.append(record)
                if waiting.count == rowsPerStep { try flush() }
            }
            try flush()
            var again = Checksum()
            try readAgain(kind) { again.add($0) }
            guard again == sum else {
                throw StorageError(
                    .database,
                    "\(kind.rawValue) reads otherwise in the target: \(again.count) of \(sum.count) rows, checksum \(again.text), "
                        + "and not \(sum.text); nothing was copied")
            }
            parts.append(Part(kind: kind.rawValue, count: sum.count, checksum: sum.text))
        }
        return parts
    }

    /// A count of rows, and a digest over them in their order.
    private struct Checksum: Equatable {
        private(set) var count = 0
        private var digest: [UInt8] = []

        var text: String { Hex.encode(digest) }

        mutating func add(_ record: CopyRecord) {
            count += 1
            for value in record.values { value.append(to: &digest) }
            digest = Digest.sha256(digest)
        }
    }
}
