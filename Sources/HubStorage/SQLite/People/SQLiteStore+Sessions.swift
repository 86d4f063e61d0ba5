import GRDB
package import HubCore
package import HubDefinitions
import HubDelivery
import HubJSON

extension SQLiteStore {
    /// `Directory.putSession`: two look-ups and one row, in one transaction.
    package func putSession(
        app: String, id: String, definition: String, joinCode: String?, attributes: [String: JSONValue]
    ) async throws -> Session {
        let now = time.wallMilliseconds
        let code = joinCode?.uppercased()
        let attributesText = JSONValue.object(attributes).text
        return try await write { db in
            if let code {
                let other = try Row.fetchOne(
                    db.cachedStatement(sql: "SELECT 1 FROM session WHERE app = ? AND join_code = ? AND id <> ?"),
                    arguments: [app, code, id])
                if other != nil { throw PeopleStoreError.joinCodeTaken(code) }
            }
            try db.cachedStatement(
                sql: """
                    INSERT INTO session (app, id, definition, join_code, attributes, created_at) VALUES (?, ?, ?, ?, ?, ?)
                    ON CONFLICT (app, id) DO UPDATE SET
                      definition = excluded.definition, join_code = excluded.join_code, attributes = excluded.attributes
                    """
            ).execute(arguments: [app, id, definition, code, attributesText, now])
            assert(db.changesCount == 1, "session \(id) was written into \(db.changesCount) rows")
            guard let session = try Self.session(db, app: app, id: id) else {
                throw StorageError(.database, "a session is gone right after it was written")
            }
            return session
        }
    }

    /// `Directory.session`: from memory, or one look-up by key.
    package func session(app: String, id: String) async throws -> Session? {
        if let known = rosters.session(app: app, id: id) { return known }
        return try await read { db in try Self.session(db, app: app, id: id) }
    }

    /// `Directory.sessions`: one look-up in the index of join codes.
    package func sessions(joinCode: String) async throws -> [Session] {
        let code = joinCode.uppercased()
        return try await read { db in
            try Row.fetchAll(db.cachedStatement(sql: "SELECT * FROM session WHERE join_code = ?"), arguments: [code])
                .map(Self.session(row:))
        }
    }

    /// `Directory.deleteSession`: one row by key, and the rows of its participants.
    package func deleteSession(app: String, id: String) async throws -> Bool {
        try await write { db in
            // Participants are deleted by foreign key.
            try db.cachedStatement(sql: "DELETE FROM session WHERE app = ? AND id = ?").execute(arguments: [app, id])
            return db.changesCount > 0
        }
    }

    static func session(_ db: Database, app: String, id: String) throws -> Session? {
        try Row.fetchOne(db.cachedStatement(sql: "SELECT * FROM session WHERE app = ? AND id = ?"), arguments: [app, id])
            .map(session(row:))
    }

    static func session(row: Row) throws -> Session {
        guard let attributes = try? JSONValue(parsing: row["attributes"] as String).objectValue else {
            throw StorageError(.unreadableRow, "the session \(row["number"] as Int64) has unreadable attributes; put it again")
        }
        return Session(
            app: row["app"], id: row["id"], number: row["number"], definition: row["definition"],
            joinCode: row["join_code"], attributes: attributes, createdAt: row["created_at"])
    }
}
