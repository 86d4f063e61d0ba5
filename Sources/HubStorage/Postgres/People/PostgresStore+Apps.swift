package import HubDelivery
import HubCore

extension PostgresStore {
    /// `AppStore.apps`: a look-up in the index of revisions.
    package func apps(changedAfter revision: Int64) async throws -> [AppRecord] {
        try await read { tx in
            try tx.query("SELECT * FROM tandem.app WHERE revision > $1 ORDER BY revision", [.int(revision)]).map(Self.app)
        }
    }

    /// `AppStore.putApp`: changes of apps are made one after another, so revisions become visible in their order.
    package func putApp(_ app: AppRecord) async throws -> AppRecord? {
        let (keys, settings) = (AppCoding.text(of: app.keys), JSONValue.object(app.settings).text)
        return try await write { tx in
            Self.lockApps(tx)
            let known = try tx.query("SELECT revision FROM tandem.app WHERE id = $1", [.text(app.id)]).first?.int("revision")
            guard known ?? 0 == app.revision else { return nil }
            var stored = app
            let rows = try tx.query(
                """
                INSERT INTO tandem.app (id, keys, settings, revision, created_at)
                VALUES ($1, $2, $3, (SELECT coalesce(max(revision), 0) + 1 FROM tandem.app), $4)
                ON CONFLICT (id) DO UPDATE SET keys = excluded.keys, settings = excluded.settings, revision = excluded.revision
                RETURNING revision
                """, [.text(app.id), .text(keys), .text(settings), .int(app.createdAt)])
            stored.revision = rows.first?.int("revision") ?? 0
            return stored
        }
    }

    /// `AppStore.removeApp`: all in one transaction.
    package func removeApp(id: String, at time: Int64) async throws -> AppRemains? {
        try await write { tx in
            Self.lockApps(tx)
            let marked = try tx.query(
                """
                UPDATE tandem.app SET keys = '[]', settings = '{}', removed_at = $2,
                  revision = (SELECT max(revision) + 1 FROM tandem.app)
                WHERE id = $1 AND removed_at IS NULL
                """, [.text(id), .int(time)])
            guard marked.written == 1 else { return nil }
            func delete(_ table: String) throws -> Int {
                try tx.query("DELETE FROM tandem.\(table) WHERE app = $1", [.text(id)]).written
            }
            return try AppCoding.remains(delete)
        }
    }

    /// Makes other hubs wait until this transaction ends, and wakes them then.
    private static func lockApps(_ tx: PostgresTransaction) {
        tx.queue("SELECT pg_advisory_xact_lock(hashtextextended('tandem.apps', 0)), pg_notify('tandem_publish', '')")
    }

    private static func app(_ row: PostgresRow) throws -> AppRecord {
        try AppCoding.app(
            id: row.text("id"), keys: row.text("keys"), settings: row.text("settings"), revision: row.int("revision"),
            createdAt: row.int("created_at"), removedAt: row.intOrNil("removed_at"))
    }
}
