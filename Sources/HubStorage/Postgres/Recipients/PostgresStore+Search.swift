import HubCore
package import HubDefinitions
package import HubDelivery

extension PostgresStore {
    /// `SearchStore.people`: a look-up for each found person and table, then one query for all of them.
    package func people(app: String, beginning text: String, limit: Int) async throws -> [FoundPerson] {
        guard limit > 0 else { return [] }
        return try await read { tx in
            var users: [String] = []
            var last: String?
            while users.count < limit, let user = try Self.nextUser(tx, app: app, from: text, after: last) {
                users.append(user)
                last = user
            }
            var known = Set(users.map(ExactText.init))
            let named = try tx.query(
                """
                SELECT user_id FROM tandem.participant WHERE app = $1 AND lower(name) >= lower($2::tandem.word)
                  AND lower(name) < lower($3::tandem.word) ORDER BY lower(name), number LIMIT $4
                """, [.text(app), .text(text), .text(text.endOfBeginnings), .int(FoundPerson.namedRowsMax)])
            for index in 0..<named.count where users.count < limit {
                let user = named[index].text("user_id")
                if known.insert(ExactText(user)).inserted { users.append(user) }
            }
            return try users.map { user in
                let device = try tx.query(
                    "SELECT 1 AS known FROM tandem.device WHERE app = $1 AND user_id = $2 LIMIT 1", [.text(app), .text(user)])
                return FoundPerson(
                    user: user, participant: try Self.places(tx, app: app, user: user, limit: 1).first, isRegistered: !device.isEmpty)
            }
        }
    }

    /// `SearchStore.places`: one row for each.
    package func places(app: String, user: String, limit: Int) async throws -> [Participant] {
        try await read { tx in try Self.places(tx, app: app, user: user, limit: limit) }
    }

    private static func places(_ tx: PostgresTransaction, app: String, user: String, limit: Int) throws -> [Participant] {
        try tx.query(
            """
            SELECT app, session, user_id, number, name, email, role, joined_at, joined_by FROM tandem.participant
            WHERE app = $1 AND user_id = $2 ORDER BY number DESC LIMIT $3
            """, [.text(app), .text(user), .int(max(0, limit))]
        ).map(participant)
    }

    /// The first user behind `last` whose id begins with the text, on a roster or with a device.
    private static func nextUser(_ tx: PostgresTransaction, app: String, from text: String, after last: String?) throws -> String? {
        let (low, operation) = last.map { ($0, ">") } ?? (text, ">=")
        let values: [PostgresValue] = [.text(app), .text(low), .text(text.endOfBeginnings)]
        let found = try ["participant", "device"].compactMap { table in
            try tx.query(
                "SELECT user_id FROM tandem.\(table) WHERE app = $1 AND user_id \(operation) $2 AND user_id < $3 ORDER BY user_id LIMIT 1",
                values
            ).first?.text("user_id")
        }
        return found.min { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    /// `SearchStore.sessions`: two walks along indexes.
    package func sessions(app: String, beginning text: String, limit: Int) async throws -> [Session] {
        guard limit > 0 else { return [] }
        let code = text.uppercased()
        return try await read { tx in
            let found = try tx.all([
                PostgresStatement(
                    "SELECT * FROM tandem.session WHERE app = $1 AND id >= $2 AND id < $3 ORDER BY id LIMIT $4",
                    [.text(app), .text(text), .text(text.endOfBeginnings), .int(limit)]),
                PostgresStatement(
                    """
                    SELECT * FROM (
                      SELECT * FROM tandem.session WHERE join_code >= $2 AND join_code < $3 ORDER BY join_code LIMIT $4) s
                    WHERE app = $1 ORDER BY join_code LIMIT $5
                    """, [.text(app), .text(code), .text(code.endOfBeginnings), .int(EventSearch.idCandidatesMax), .int(limit)]),
            ])
            let sessions = try found.flatMap { try $0.map(Self.session) }
            var seen: Set<Int64> = []
            return Array(sessions.filter { seen.insert($0.number).inserted }.prefix(limit))
        }
    }

    /// `SearchStore.events(app:idBeginning:limit:)`: a walk along the ids of each day.
    package func events(app: String, idBeginning text: String, limit: Int) async throws -> [EventRecord] {
        guard limit > 0 else { return [] }
        return try await reading { tx, lists in
            try tx.query(
                """
                SELECT \(EventReader.columns) FROM (
                  SELECT * FROM tandem.event WHERE id >= $1 AND id < $2 ORDER BY id LIMIT $3) e WHERE e.app = $4 ORDER BY e.id LIMIT $5
                """,
                [.text(text), .text(text.endOfBeginnings), .int(EventSearch.idCandidatesMax), .text(app), .int(limit)]
            ).compactMap { row in lists.event { () throws(StorageError) in try EventReader.event(row) } }
        }
    }

    /// `SearchStore.newestEvents`: a walk along an index that has the names.
    package func newestEvents(_ search: EventSearch, limit: Int) async throws -> FoundEvents {
        let limit = min(max(0, limit), EventSearch.pageMax)
        return try await reading { tx, lists in
            let last = try search.after.map { after in
                try tx.query(
                    "SELECT id, committed_at, name, sequence FROM tandem.event WHERE id = $1 AND app = $2",
                    [.text(after), .text(search.app)]
                ).first
            }
            if case .some(.none) = last { return FoundEvents(events: [], next: nil) }
            let candidates = EventCandidates(search, after: last ?? nil)
            let rows = try tx.query(candidates.pageSQL, candidates.values + [.int(limit + 1)])
            let events = (0..<min(limit, rows.count)).compactMap { index in
                lists.event { () throws(StorageError) in try EventReader.event(rows[index]) }
            }
            if rows.count > limit { return FoundEvents(events: events, next: limit == 0 ? search.after : rows[limit - 1].text("id")) }
            // The last one that was looked at, if there are more behind it.
            if search.name == nil { return FoundEvents(events: events, next: nil) }
            return FoundEvents(events: events, next: try tx.query(candidates.cutSQL, candidates.values).first?.text("id"))
        }
    }
}

/// The events that a search for the newest ones looks at.
private struct EventCandidates {
    private var filter: String
    private let order: String
    private var name = "true"
    private let most: Int
    private(set) var values: [PostgresValue]

    /// - Parameter last: the event of `EventSearch.after`.
    init(_ search: EventSearch, after last: PostgresRow?) {
        values = [.text(search.app)]
        if let channel = search.channel {
            values.append(.text(channel))
            filter = "app = $1 AND channel = $2"
            if let last {
                values.append(.int(last.int("sequence")))
                filter += " AND sequence < $3"
            }
            (order, most) = ("sequence DESC", EventSearch.channelCandidatesMax)
        } else {
            filter = "app = $1"
            if let last {
                values += [.int(last.int("committed_at")), .text(last.text("name")), .text(last.text("id"))]
                filter += " AND (committed_at, name, id) < ($2, $3, $4)"
            }
            (order, most) = ("committed_at DESC, name DESC, id DESC", EventSearch.candidatesMax)
        }
        guard let text = search.name else { return }
        let place = values.count + 1
        values.append(.text(text))
        name = "name = $\(place)"
        if search.isBeginning {
            values.append(.text(text.endOfBeginnings))
            name = "name >= $\(place) AND name < $\(place + 1)"
        }
    }

    private var candidates: String {
        "SELECT * FROM tandem.event WHERE \(filter) ORDER BY \(order) LIMIT \(most)"
    }

    /// Takes one value more: the limit.
    var pageSQL: String {
        """
        SELECT \(EventReader.columns) FROM (\(candidates)) e WHERE \(name) ORDER BY \(order) LIMIT $\(values.count + 1)
        """
    }

    /// The last candidate, if there are as many as may be looked at. The name's values are used as well, because every value has to be.
    var cutSQL: String {
        "SELECT id FROM (\(candidates) OFFSET \(most - 1)) e WHERE (\(name)) IS NOT NULL LIMIT 1"
    }
}
