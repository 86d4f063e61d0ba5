import GRDB
import HubCore
package import HubDefinitions
package import HubDelivery

extension SQLiteStore {
    /// `Directory.putParticipant`: some look-ups and one row, in one transaction.
    package func putParticipant(
        app: String, session: String, user: String, name: String, email: String?, role: String?
    ) async throws -> Participant {
        let now = time.wallMilliseconds
        return try await write { db in
            let known = try Row.fetchOne(
                db.cachedStatement(sql: "SELECT 1 FROM session WHERE app = ? AND id = ?"), arguments: [app, session])
            if known == nil { throw PeopleStoreError.noSuchSession(session) }
            let email = Email(email)
            try Self.requireFree(email, db, app: app, session: session, except: user)
            try db.cachedStatement(
                sql: """
                    INSERT INTO participant (app, session, user, name, email, email_key, role, joined_at)
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                    ON CONFLICT (app, session, user) DO UPDATE SET
                      name = excluded.name, email = excluded.email, role = excluded.role,
                      email_key = CASE WHEN joined_by = 'device' THEN NULL ELSE excluded.email_key END
                    """
            ).execute(arguments: [app, session, user, name, email?.text, email?.key, role, now])
            assert(db.changesCount == 1, "a participant was written into \(db.changesCount) rows")
            return try Self.requireParticipant(Self.participant(db, app: app, session: session, user: user))
        }
    }

    /// Recognises or adds a participant in one write, so two joins of one person cannot miss each other.
    package func join(
        session: Session, name: String, email: String, role: String?, identity: JoinIdentity, installation: String?, membersMax: Int
    ) async throws -> Participant {
        let now = time.wallMilliseconds
        return try await write { db in
            let living = try Row.fetchOne(
                db.cachedStatement(sql: "SELECT 1 FROM session WHERE number = ? AND app = ? AND id = ?"),
                arguments: [session.number, session.app, session.id])
            if living == nil { throw PeopleStoreError.noSuchSession(session.id) }
            let email = Email(email)
            let known =
                switch identity {
                case .email: try email.flatMap { try Self.participant(db, session, "email_key", $0.key) }
                case .device: try installation.flatMap { try Self.participant(db, session, "device", $0) }
                }
            if var participant = known {
                guard participant.joinedBy == identity else { throw PeopleStoreError.emailOfBackend }
                participant.name = name
                try db.cachedStatement(sql: "UPDATE participant SET name = ? WHERE number = ?")
                    .execute(arguments: [name, participant.number])
                assert(db.changesCount == 1, "participant \(participant.number) was renamed in \(db.changesCount) rows")
                return participant
            }
            let count = try Int.fetchOne(
                db.cachedStatement(sql: "SELECT COUNT(*) FROM participant WHERE app = ? AND session = ?"),
                arguments: [session.app, session.id])
            if let count, count >= membersMax { throw PeopleStoreError.sessionFull }
            let number = try Self.freeNumber(db, app: session.app)
            // An e-mail that recognises nobody is only a note with the name, and may belong to another person.
            try db.cachedStatement(
                sql: """
                    INSERT INTO participant (number, app, session, user, name, email, email_key, role, device, joined_by, joined_at)
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                    """
            ).execute(arguments: [
                number, session.app, session.id, String(number), name, email?.text, identity == .email ? email?.key : nil, role,
                identity == .device ? installation : nil, identity.rawValue, now,
            ])
            return try Self.requireParticipant(
                Self.participant(db, app: session.app, session: session.id, user: String(number)))
        }
    }

    /// `Directory.sessionCount`: counts to 2 and no further.
    package func sessionCount(app: String, user: String) async throws -> Int {
        try await read { db in
            try Int.fetchOne(
                db.cachedStatement(sql: "SELECT COUNT(*) FROM (SELECT 1 FROM participant WHERE app = ? AND user = ? LIMIT 2)"),
                arguments: [app, user]) ?? 0
        }
    }

    /// `Directory.participant`: one look-up by key.
    package func participant(app: String, session: String, user: String) async throws -> Participant? {
        try await read { db in try Self.participant(db, app: app, session: session, user: user) }
    }

    /// `Directory.participants`: reads and sorts the session's rows.
    package func participants(app: String, session: String) async throws -> [Participant] {
        try await read { db in try Self.participants(db, app: app, session: session) }
    }

    /// `Directory.deleteParticipant`: one row by key.
    package func deleteParticipant(app: String, session: String, user: String) async throws -> Bool {
        try await write { db in
            try db.cachedStatement(sql: "DELETE FROM participant WHERE app = ? AND session = ? AND user = ?")
                .execute(arguments: [app, session, user])
            assert(db.changesCount <= 1, "a participant was deleted from \(db.changesCount) rows")
            return db.changesCount > 0
        }
    }

    static var rosterSQL: String {
        """
        SELECT \(deviceColumns), \(participantColumns), device.rowid FROM participant
        LEFT JOIN device ON device.app = participant.app AND device.user = participant.user
        WHERE participant.app = ? AND participant.session = ?
        """
    }

    /// `Directory.roster`: from memory, or one look-up per participant in one query.
    package func roster(app: String, session: String) async throws -> [RosterEntry] {
        if let known = rosters.roster(app: app, session: session) { return known }
        let version = rosters.version
        let roster = try await read { db in try Self.readRoster(db, app: app, session: session) }
        rosters.keep(roster, app: app, session: session, version: version)
        return roster.entries
    }

    private static func readRoster(_ db: Database, app: String, session: String) throws -> RosterCache.Roster {
        // Joined from left to right, so that the app's other devices are not read. Entries are sorted below: ORDER BY would sort the rows.
        let rows = try Row.fetchCursor(db.cachedStatement(sql: rosterSQL), arguments: [app, session])
        var roster = RosterCache.Roster(session: try Self.session(db, app: app, id: session))
        while let row = try rows.next() {
            let first = row.count - participantColumnCount - 1
            let device = row.hasNull(atIndex: deviceIDColumn) ? nil : try device(row: row)
            if device != nil { roster.devices.append(row[row.count - 1]) }
            let number: Int64 = row[first + numberColumn]
            if let last = roster.entries.indices.last, roster.entries[last].participant.number == number {
                if let device { roster.entries[last].devices.append(device) }
            } else {
                roster.entries.append(RosterEntry(participant: participant(row: row, from: first), devices: device.map { [$0] } ?? []))
            }
        }
        roster.entries.sort { $0.participant.number < $1.participant.number }
        for index in roster.entries.indices where roster.entries[index].devices.count > 1 {
            roster.entries[index].devices.sort { ($1.registeredAt, $0.id) < ($0.registeredAt, $1.id) }
        }
        return roster
    }
}

/// An e-mail address as written, and its form for comparison.
private struct Email {
    let text: String
    let key: String

    /// Nil for a missing or empty address, which any number of participants may have.
    init?(_ text: String?) {
        guard let text, !text.isEmpty else { return nil }
        self.text = text
        key = text.lowercased()
    }
}

extension SQLiteStore {
    /// - Parameter column: one of the columns that are unique in a session.
    private static func participant(_ db: Database, _ session: Session, _ column: String, _ value: String) throws -> Participant? {
        try Row.fetchOne(
            db.cachedStatement(sql: "SELECT \(participantColumns) FROM participant WHERE app = ? AND session = ? AND \(column) = ?"),
            arguments: [session.app, session.id, value]
        ).map(participant(row:))
    }

    private static func requireFree(_ email: Email?, _ db: Database, app: String, session: String, except user: String) throws {
        guard let email else { return }
        let owner = try String.fetchOne(
            db.cachedStatement(sql: "SELECT user FROM participant WHERE app = ? AND session = ? AND email_key = ?"),
            arguments: [app, session, email.key])
        if let owner, owner != user { throw PeopleStoreError.emailTaken }
    }

    /// A participant number whose decimal text is not yet a user id in the app, neither of a participant nor of a device owner. The number
    /// was never given before.
    ///
    /// Backends use small numbers as user ids too. After several taken neighbours the steps double, so a million taken ids cost twenty
    /// look-ups inside the only writer.
    private static func freeNumber(_ db: Database, app: String) throws -> Int64 {
        let last = try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT seq FROM sqlite_sequence WHERE name = 'participant'"))
        var number = (last ?? 0) + 1
        for attempt in 0..<numberAttemptsMax {
            let user = String(number)
            let taken = try Bool.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT EXISTS (SELECT 1 FROM participant WHERE app = ? AND user = ?)
                          OR EXISTS (SELECT 1 FROM device WHERE app = ? AND user = ?)
                        """), arguments: [app, user, app, user])
            assert(number > last ?? 0, "number \(number) was given before, \(last ?? 0) was the last")
            if taken != true { return number }
            number += attempt < singleSteps ? 1 : 1 << Int64(attempt - singleSteps)
        }
        throw StorageError(.database, "no participant number is free: too many user ids of the app are plain numbers")
    }

    private static var singleSteps: Int { 16 }
    /// Enough steps to pass 2^32 taken numbers.
    private static var numberAttemptsMax: Int { 48 }

    private static func participant(_ db: Database, app: String, session: String, user: String) throws -> Participant? {
        try Row.fetchOne(
            db.cachedStatement(sql: "SELECT \(participantColumns) FROM participant WHERE app = ? AND session = ? AND user = ?"),
            arguments: [app, session, user]
        ).map(participant(row:))
    }

    private static func participants(_ db: Database, app: String, session: String) throws -> [Participant] {
        let rows = try Row.fetchCursor(
            db.cachedStatement(sql: "SELECT \(participantColumns) FROM participant WHERE app = ? AND session = ? ORDER BY number"),
            arguments: [app, session])
        return try Array(rows.map(participant(row:)))
    }

    private static func requireParticipant(_ participant: Participant?) throws -> Participant {
        guard let participant else {
            throw StorageError(.database, "a participant is gone right after it was written")
        }
        return participant
    }

    static let participantColumns = """
        participant.app, participant.session, participant.user, participant.number, participant.name, participant.email, participant.role,
        participant.joined_at, participant.joined_by
        """

    private static var participantColumnCount: Int { 9 }
    /// Index of `number` in `participantColumns`, and of `id` in `deviceColumns`.
    private static var numberColumn: Int { 3 }
    private static var deviceIDColumn: Int { 2 }

    private static func participant(row: Row) -> Participant { participant(row: row, from: 0) }

    /// - Parameter row: has `participantColumns` from `first` on, read by position: looking up names takes longer than reading all values.
    static func participant(row: Row, from first: Int) -> Participant {
        Participant(
            app: row[first], session: row[first + 1], user: row[first + 2], number: row[first + 3], name: row[first + 4],
            email: row[first + 5], role: row[first + 6], joinedAt: row[first + 7],
            joinedBy: (row[first + 8] as String?).flatMap(JoinIdentity.init(rawValue:)))
    }
}
