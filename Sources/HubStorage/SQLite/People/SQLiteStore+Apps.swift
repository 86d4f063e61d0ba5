import GRDB
package import HubDelivery
import HubCore

extension SQLiteStore {
    /// `AppStore.apps`: a look-up in the index of revisions.
    package func apps(changedAfter revision: Int64) async throws -> [AppRecord] {
        try await read { db in
            try Row.fetchAll(db.cachedStatement(sql: "SELECT * FROM app WHERE revision > ? ORDER BY revision"), arguments: [revision])
                .map(Self.app(row:))
        }
    }

    /// `AppStore.putApp`: one row.
    package func putApp(_ app: AppRecord) async throws -> AppRecord? {
        let (keys, settings) = (AppCoding.text(of: app.keys), JSONValue.object(app.settings).text)
        return try await write { db in
            let known = try Int64.fetchOne(db, sql: "SELECT revision FROM app WHERE id = ?", arguments: [app.id])
            guard known ?? 0 == app.revision else { return nil }
            var stored = app
            stored.revision = try Self.nextRevision(db)
            try db.execute(
                sql: """
                    INSERT INTO app (id, keys, settings, revision, created_at) VALUES (?, ?, ?, ?, ?)
                    ON CONFLICT (id) DO UPDATE SET keys = excluded.keys, settings = excluded.settings, revision = excluded.revision
                    """, arguments: [app.id, keys, settings, stored.revision, app.createdAt])
            return stored
        }
    }

    /// `AppStore.removeApp`: all in one transaction.
    package func removeApp(id: String, at time: Int64) async throws -> AppRemains? {
        try await write { db in
            try db.execute(
                sql: "UPDATE app SET keys = '[]', settings = '{}', removed_at = ?, revision = ? WHERE id = ? AND removed_at IS NULL",
                arguments: [time, try Self.nextRevision(db), id])
            guard db.changesCount == 1 else { return nil }
            func delete(_ table: String) throws -> Int {
                try db.execute(sql: "DELETE FROM \(table) WHERE app = ?", arguments: [id])
                return db.changesCount
            }
            return try AppCoding.remains(delete)
        }
    }

    private static func nextRevision(_ db: Database) throws -> Int64 {
        try Int64.fetchOne(db, sql: "SELECT coalesce(max(revision), 0) + 1 FROM app") ?? 1
    }

    private static func app(row: Row) throws -> AppRecord {
        try AppCoding.app(
            id: row["id"], keys: row["keys"], settings: row["settings"], revision: row["revision"], createdAt: row["created_at"],
            removedAt: row["removed_at"])
    }
}
