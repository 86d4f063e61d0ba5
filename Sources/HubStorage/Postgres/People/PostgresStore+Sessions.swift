package import HubCore
package import HubDefinitions
import HubDelivery
import HubJSON

extension PostgresStore {
    /// `PeopleStore.putSession`: two round trips. Sessions with one code are put one after another.
    package func putSession(
        app: String, id: String, definition: String, joinCode: String?, attributes: [String: JSONValue]
    ) async throws -> Session {
        let now = time.wallMilliseconds
        let code = joinCode?.uppercased()
        let text = JSONValue.object(attributes).text
        return try await write { tx in
            if let code {
                tx.queue("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [.text("tandem.code \(app) \(code)")])
                let other = try tx.query(
                    "SELECT 1 AS known FROM tandem.session WHERE app = $1 AND join_code = $2 AND id <> $3",
                    [.text(app), .text(code), .text(id)])
                if !other.isEmpty { throw PeopleStoreError.joinCodeTaken(code) }
            }
            let rows = try tx.query(
                """
                INSERT INTO tandem.session (app, id, definition, join_code, attributes, created_at) VALUES ($1, $2, $3, $4, $5, $6)
                ON CONFLICT (app, id) DO UPDATE SET
                  definition = excluded.definition, join_code = excluded.join_code, attributes = excluded.attributes
                RETURNING *
                """, [.text(app), .text(id), .text(definition), .text(code), .text(text), .int(now)])
            guard let row = rows.first else { throw StorageError(.database, "a session is gone right after it was written") }
            return try Self.session(row)
        }
    }

    /// `PeopleStore.session`: one look-up by key.
    package func session(app: String, id: String) async throws -> Session? {
        try await read { tx in
            try tx.query("SELECT * FROM tandem.session WHERE app = $1 AND id = $2", [.text(app), .text(id)]).first.map(Self.session)
        }
    }

    /// `PeopleStore.sessions`: one look-up in the index of join codes.
    package func sessions(joinCode: String) async throws -> [Session] {
        let code = joinCode.uppercased()
        return try await read { tx in
            try tx.query("SELECT * FROM tandem.session WHERE join_code = $1", [.text(code)]).map(Self.session)
        }
    }

    /// `PeopleStore.deleteSession`: one row by key, and the rows of its participants, by foreign key.
    package func deleteSession(app: String, id: String) async throws -> Bool {
        try await write { tx in
            try tx.query("DELETE FROM tandem.session WHERE app = $1 AND id = $2", [.text(app), .text(id)]).written > 0
        }
    }

    static func session(_ row: PostgresRow) throws -> Session {
        guard let attributes = try? JSONValue(parsing: row.text("attributes")).objectValue else {
            throw StorageError(.unreadableRow, "the session \(row.int("number")) has unreadable attributes; put it again")
        }
        return Session(
            app: row.text("app"), id: row.text("id"), number: row.int("number"), definition: row.text("definition"),
            joinCode: row.textOrNil("join_code"), attributes: attributes, createdAt: row.int("created_at"))
    }
}
