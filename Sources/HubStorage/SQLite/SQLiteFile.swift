internal import CSQLiteSettings
import Foundation
import GRDB

/// Opens a database file. Every error tells the operator what is wrong and how to repair it.
enum SQLiteFile {
    /// How long a statement waits for another process's lock.
    static let busyTimeoutSeconds: Double = 5
    /// Connections that read in parallel with the writer.
    static let readersMax = 4
    /// The writer's page cache, large enough for all deliveries under way, whose rows are written twice.
    static let writerCacheKibibytes = 16_384
    private static let settings: Void = tandem_sqlite_without_memory_account()
    /// The folder and the file hold device tokens and e-mail addresses, so only their owner may read them.
    static let folderPermissions = 0o700
    static let filePermissions: mode_t = 0o600

    /// Creates missing files and migrates old ones.
    static func open(path: String, synchronous: SQLiteStore.Synchronous) throws(StorageError) -> DatabasePool {
        _ = settings
        try prepare(path: path)
        do {
            var configuration = Configuration()
            configuration.busyMode = .timeout(busyTimeoutSeconds)
            configuration.maximumReaderCount = readersMax
            configuration.foreignKeysEnabled = true
            configuration.label = "tandem.store"
            try inspect(path: path, configuration: configuration)
            let pool = try DatabasePool(path: path, configuration: configuration)
            try SQLiteMigrations.migrator.migrate(pool)
            // Set here, because GRDB sets NORMAL when it turns WAL on, after every earlier hook.
            try pool.writeWithoutTransaction { db in
                try db.execute(sql: "PRAGMA synchronous = \(synchronous.rawValue)")
                try db.execute(sql: "PRAGMA cache_size = -\(writerCacheKibibytes)")
                try db.execute(sql: "PRAGMA wal_autocheckpoint = \(Checkpoints.logPagesMax)")
            }
            try pool.write { db in try PushLeases.takeUp(db) }
            return pool
        } catch let error as StorageError {
            throw error
        } catch let error as DatabaseError {
            throw StorageError(opening: path, error)
        } catch {
            throw StorageError(.database, "the store \(path) cannot be opened: \(error)")
        }
    }

    /// Creates and opens the file once without SQLite. The system's message for a missing permission says more than SQLite's "unable to
    /// open database file".
    static func prepare(path: String) throws(StorageError) {
        let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
        do {
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: folderPermissions])
        } catch {
            throw StorageError(
                .notWritable,
                "the store's folder \(folder) cannot be created; create it, or give another place for the data")
        }
        // The mode counts for a new file only. SQLite gives its -wal and -shm files the same mode.
        let descriptor = unsafe Foundation.open(path, O_RDWR | O_CREAT | O_CLOEXEC, filePermissions)
        guard descriptor >= 0 else {
            let reason = unsafe String(cString: strerror(errno))
            throw StorageError(
                .notWritable,
                "the store \(path) cannot be opened for writing (\(reason)); "
                    + "make it and its folder writable for Tandem's user, or give another place for the data")
        }
        close(descriptor)
    }

    /// Refuses a foreign file before anything in it changes, even its journal mode.
    private static func inspect(path: String, configuration: Configuration) throws {
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        try queue.read { db in
            let applicationID = try Int32.fetchOne(db, sql: "PRAGMA application_id")
            let tableCount = try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM sqlite_master") ?? 0
            if tableCount > 0 && applicationID != SQLiteMigrations.applicationID {
                throw StorageError(
                    .foreignDatabase,
                    "\(path) is another program's database; give Tandem's store a file of its own")
            }
            if try SQLiteMigrations.migrator.hasBeenSuperseded(db) {
                throw StorageError(
                    .newerSchema,
                    "the store \(path) was written by a newer version of Tandem; "
                        + "start that version, or restore a backup from before the upgrade")
            }
        }
        try queue.close()
    }
}

extension StorageError {
    /// An error while opening. Uses the primary code: SQLite's extended codes say more than an operator can use.
    fileprivate init(opening path: String, _ error: DatabaseError) {
        switch error.resultCode {
        case .SQLITE_NOTADB, .SQLITE_CORRUPT:
            self.init(
                .notADatabase,
                "\(path) is not an SQLite database, or is damaged; move it away or restore a backup, then start again")
        case .SQLITE_CANTOPEN, .SQLITE_READONLY, .SQLITE_PERM:
            self.init(
                .notWritable,
                "the store \(path) cannot be written; make it and its folder writable for Tandem's user")
        case .SQLITE_BUSY, .SQLITE_LOCKED:
            self.init(
                .locked, "the store \(path) is locked by another process; stop that one, or give this one another file")
        default:
            self.init(.database, "the store \(path) cannot be opened: \(StorageError.summary(error))")
        }
    }

    /// An error of a statement. Keeps SQLite's code and message, which name tables and columns. Drops GRDB's error, which carries the
    /// statement's arguments: tokens, e-mails and payloads.
    init(_ error: DatabaseError) {
        switch error.resultCode {
        case .SQLITE_BUSY, .SQLITE_LOCKED:
            self.init(.locked, "the store is locked by another process; stop that one, or try again")
        case .SQLITE_FULL:
            self.init(.database, "the store's disk is full; free some space")
        default:
            self.init(.database, "the store failed: \(StorageError.summary(error))")
        }
    }

    private static func summary(_ error: DatabaseError) -> String {
        "SQLite error \(error.extendedResultCode.rawValue), \(error.message ?? "no message")"
    }
}
