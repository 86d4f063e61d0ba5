internal import HubCore
package import HubDefinitions
package import HubDelivery

extension PostgresStore {
    /// `PeopleStore.putParticipant`: the session's row is locked, so that two people cannot take one e-mail.
    package func putParticipant(
        app: String, session: String, user: String, name: String, email: String?, role: String?
    ) async throws -> Participant {
        let now = time.wallMilliseconds
        return try await write { tx in
            let known = try tx.query(
                "SELECT 1 AS known FROM tandem.session WHERE app = $1 AND id = $2 FOR UPDATE", [.text(app), .text(session)])
            if known.isEmpty { throw PeopleStoreError.noSuchSession(session) }
            let (email, key) = Self.email(email)
            if let key {
                let owner = try tx.query(
                    "SELECT user_id FROM tandem.participant WHERE app = $1 AND session = $2 AND email_key = $3",
                    [.text(app), .text(session), .text(key)]
                ).first?.text("user_id")
                if let owner, owner != user { throw PeopleStoreError.emailTaken }
            }
            let rows = try tx.query(
                """
                INSERT INTO tandem.participant AS known (app, session, user_id, name, email, email_key, role, joined_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
                ON CONFLICT (app, session, user_id) DO UPDATE SET
                  name = excluded.name, email = excluded.email, role = excluded.role,
                  email_key = CASE WHEN known.joined_by = 'device' THEN NULL ELSE excluded.email_key END
                RETURNING *
                """,
                [.text(app), .text(session), .text(user), .text(name), .text(email), .text(key), .text(role), .int(now)])
            return try Self.written(rows)
        }
    }

    /// `PeopleStore.join`: the session's row is locked. Two joins of one person cannot miss each other, and no place is given twice.
    package func join(
        session: Session, name: String, email: String, role: String?, identity: JoinIdentity, installation: String?, membersMax: Int
    ) async throws -> Participant {
        let now = time.wallMilliseconds
        return try await write { tx in
            let living = try tx.query(
                "SELECT 1 AS known FROM tandem.session WHERE number = $1 AND app = $2 AND id = $3 FOR UPDATE",
                [.int(session.number), .text(session.app), .text(session.id)])
            if living.isEmpty { throw PeopleStoreError.noSuchSession(session.id) }
            let (email, key) = Self.email(email)
            let (column, value) = identity == .email ? ("email_key", key) : ("device", installation)
            if let value {
                let row = try tx.query(
                    "SELECT * FROM tandem.participant WHERE app = $1 AND session = $2 AND \(column) = $3 FOR UPDATE",
                    [.text(session.app), .text(session.id), .text(value)]
                ).first
                if let row {
                    let participant = Self.participant(row)
                    guard participant.joinedBy == identity else { throw PeopleStoreError.emailOfBackend }
                    return try Self.written(
                        tx.query(
                            "UPDATE tandem.participant SET name = $1 WHERE number = $2 RETURNING *",
                            [.text(name), .int(participant.number)]))
                }
            }
            let count = try tx.query(
                "SELECT count(*) AS count FROM tandem.participant WHERE app = $1 AND session = $2", [.text(session.app), .text(session.id)]
            ).first?.int("count")
            if let count, count >= Int64(clamping: membersMax) { throw PeopleStoreError.sessionFull }
            let number = try Self.freeNumber(app: session.app, tx)
            // An e-mail that recognises nobody is only a note with the name, and may belong to another person.
            let rows = try tx.query(
                """
                INSERT INTO tandem.participant (number, app, session, user_id, name, email, email_key, role, device, joined_by, joined_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING *
                """,
                [
                    .int(number), .text(session.app), .text(session.id), .text(String(number)), .text(name), .text(email),
                    .text(identity == .email ? key : nil), .text(role), .text(identity == .device ? installation : nil),
                    .text(identity.rawValue), .int(now),
                ])
            return try Self.written(rows)
        }
    }

    /// `PeopleStore.sessionCount`: counts to 2 and no further.
    package func sessionCount(app: String, user: String) async throws -> Int {
        try await read { tx in
            try tx.query(
                "SELECT 1 AS known FROM tandem.participant WHERE app = $1 AND user_id = $2 LIMIT 2", [.text(app), .text(user)]
            ).count
        }
    }

    /// `PeopleStore.participant`: one look-up by key.
    package func participant(app: String, session: String, user: String) async throws -> Participant? {
        try await read { tx in
            try tx.query(
                "SELECT * FROM tandem.participant WHERE app = $1 AND session = $2 AND user_id = $3",
                [.text(app), .text(session), .text(user)]
            ).first.map(Self.participant)
        }
    }

    /// `PeopleStore.participants`: reads and sorts the session's rows.
    package func participants(app: String, session: String) async throws -> [Participant] {
        try await read { tx in try Self.participants(app: app, session: session, tx) }
    }

    /// `PeopleStore.deleteParticipant`: one row by key.
    package func deleteParticipant(app: String, session: String, user: String) async throws -> Bool {
        try await write { tx in
            try tx.query(
                "DELETE FROM tandem.participant WHERE app = $1 AND session = $2 AND user_id = $3",
                [.text(app), .text(session), .text(user)]
            ).written > 0
        }
    }

    /// `PeopleStore.roster`: two queries on one snapshot, in one round trip.
    package func roster(app: String, session: String) async throws -> [RosterEntry] {
        try await read { tx in
            let results = try tx.all([Self.ofSession(app: app, session), Self.devices(app: app, session: session)])
            let devices = try Self.byUser(results[1])
            return results[0].map(Self.participant).map { RosterEntry(participant: $0, devices: devices[$0.user] ?? []) }
        }
    }

    // MARK: Inside a transaction

    /// An e-mail address as written, and its form for comparison. An empty one is none.
    private static func email(_ text: String?) -> (text: String?, key: String?) {
        guard let text, !text.isEmpty else { return (nil, nil) }
        return (text, text.lowercased())
    }

    /// A number whose decimal text is not yet a user id in the app, neither of a participant nor of a device's owner. It was never given.
    ///
    /// Backends use small numbers as user ids too. After several taken neighbours the steps double.
    private static func freeNumber(app: String, _ tx: PostgresTransaction) throws -> Int64 {
        var step: Int64 = 1
        for attempt in 0..<numberAttemptsMax {
            let rows = try tx.query(
                """
                WITH n AS (SELECT nextval(pg_get_serial_sequence('tandem.participant', 'number')) AS number)
                SELECT n.number, EXISTS (SELECT FROM tandem.participant p WHERE p.app = $1 AND p.user_id = n.number::text)
                  OR EXISTS (SELECT FROM tandem.device d WHERE d.app = $1 AND d.user_id = n.number::text) AS is_taken FROM n
                """, [.text(app)])
            guard let row = rows.first else { break }
            if !row.bool("is_taken") { return row.int("number") }
            guard attempt >= singleSteps else { continue }
            // Another hub may be further already. The sequence never goes back, which would give numbers twice.
            tx.queue("SELECT pg_advisory_xact_lock(hashtextextended('tandem.number', 0))")
            try tx.query(
                """
                SELECT setval(s::regclass, $1) FROM pg_get_serial_sequence('tandem.participant', 'number') AS s
                WHERE pg_sequence_last_value(s::regclass) < $1
                """, [.int(row.int("number") + step)])
            step *= 2
        }
        throw StorageError(.database, "no participant number is free: too many user ids of the app are plain numbers")
    }

    private static var singleSteps: Int { 16 }
    /// Enough steps to pass 2^32 taken numbers.
    private static var numberAttemptsMax: Int { 48 }

    private static func participants(app: String, session: String, _ tx: PostgresTransaction) throws -> [Participant] {
        try tx.all([ofSession(app: app, session)])[0].map(participant)
    }

    private static func ofSession(app: String, _ session: String) -> PostgresStatement {
        PostgresStatement(
            """
            SELECT app, session, user_id, number, name, email, role, joined_at, joined_by FROM tandem.participant
            WHERE app = $1 AND session = $2 ORDER BY number
            """, [.text(app), .text(session)])
    }

    private static func written(_ rows: PostgresRows) throws -> Participant {
        guard let row = rows.first else { throw StorageError(.database, "a participant is gone right after it was written") }
        return participant(row)
    }

    static func participant(_ row: PostgresRow) -> Participant {
        Participant(
            app: row.text("app"), session: row.text("session"), user: row.text("user_id"), number: row.int("number"),
            name: row.text("name"),
            email: row.textOrNil("email"), role: row.textOrNil("role"), joinedAt: row.int("joined_at"),
            joinedBy: row.textOrNil("joined_by").flatMap(JoinIdentity.init(rawValue:)))
    }
}
