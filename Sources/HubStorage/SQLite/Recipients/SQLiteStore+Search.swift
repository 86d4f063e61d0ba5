import GRDB
import HubCore
package import HubDefinitions
package import HubDelivery

extension SQLiteStore {
    /// `SearchStore.people`: a few look-ups for each found person, however many there are.
    package func people(app: String, beginning text: String, limit: Int) async throws -> [FoundPerson] {
        guard limit > 0 else { return [] }
        return try await read { db in
            var users: [String] = []
            var last: String?
            while users.count < limit, let user = try Self.nextUser(db, app: app, from: text, after: last) {
                users.append(user)
                last = user
            }
            let known = Set(users.map(ExactText.init))
            var named = known
            let rows = try String.fetchCursor(
                db.cachedStatement(sql: Self.usersByNameSQL), arguments: [app, text, text.endOfBeginnings, FoundPerson.namedRowsMax])
            while users.count < limit, let user = try rows.next() {
                if named.insert(ExactText(user)).inserted { users.append(user) }
            }
            return try users.map { user in
                let isRegistered = try Row.fetchOne(
                    db.cachedStatement(sql: "SELECT 1 FROM device WHERE app = ? AND user = ? LIMIT 1"), arguments: [app, user])
                return FoundPerson(
                    user: user, participant: try Self.places(db, app: app, user: user, limit: 1).first, isRegistered: isRegistered != nil)
            }
        }
    }

    /// `SearchStore.places`: one row for each.
    package func places(app: String, user: String, limit: Int) async throws -> [Participant] {
        try await read { db in try Self.places(db, app: app, user: user, limit: limit) }
    }

    private static func places(_ db: Database, app: String, user: String, limit: Int) throws -> [Participant] {
        let rows = try Row.fetchAll(db.cachedStatement(sql: placesSQL), arguments: [app, user, max(0, limit)])
        return rows.map { participant(row: $0, from: 0) }
    }

    /// The first user behind `last` whose id begins with the text, on a roster or with a device.
    private static func nextUser(_ db: Database, app: String, from text: String, after last: String?) throws -> String? {
        // A user's many rows are stepped over by the index.
        let (low, operation) = last.map { ($0, ">") } ?? (text, ">=")
        let found = try ["participant", "device"].compactMap { table in
            try String.fetchOne(
                db.cachedStatement(
                    sql: "SELECT user FROM \(table) WHERE app = ? AND user \(operation) ? AND user < ? ORDER BY user LIMIT 1"),
                arguments: [app, low, text.endOfBeginnings])
        }
        return found.min { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    static var usersByNameSQL: String {
        """
        SELECT user FROM participant WHERE app = ? AND name >= ? COLLATE NOCASE AND name < ? COLLATE NOCASE
        ORDER BY name COLLATE NOCASE, number LIMIT ?
        """
    }

    private static var placesSQL: String {
        "SELECT \(participantColumns) FROM participant WHERE app = ? AND user = ? ORDER BY number DESC LIMIT ?"
    }

    /// `SearchStore.sessions`: two walks along indexes.
    package func sessions(app: String, beginning text: String, limit: Int) async throws -> [Session] {
        guard limit > 0 else { return [] }
        return try await read { db in
            let byID = try Row.fetchAll(
                db.cachedStatement(sql: "SELECT * FROM session WHERE app = ? AND id >= ? AND id < ? ORDER BY id LIMIT ?"),
                arguments: [app, text, text.endOfBeginnings, limit])
            let code = text.uppercased()
            let byCode = try Row.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT * FROM (SELECT * FROM session WHERE join_code >= ? AND join_code < ? ORDER BY join_code LIMIT ?)
                        WHERE app = ? LIMIT ?
                        """), arguments: [code, code.endOfBeginnings, EventSearch.idCandidatesMax, app, limit])
            var seen: Set<Int64> = []
            return try (byID + byCode).filter { seen.insert($0["number"]).inserted }.prefix(limit).map(Self.session(row:))
        }
    }

    /// `SearchStore.events(app:idBeginning:limit:)`: a walk along the ids, which begin with the time.
    package func events(app: String, idBeginning text: String, limit: Int) async throws -> [EventRecord] {
        guard limit > 0 else { return [] }
        return try await reading { db, lists in
            try Row.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT * FROM (SELECT * FROM event WHERE id >= ? AND id < ? ORDER BY id LIMIT ?) WHERE app = ? LIMIT ?
                        """), arguments: [text, text.endOfBeginnings, EventSearch.idCandidatesMax, app, limit]
            ).compactMap { lists.event($0) }
        }
    }

    /// `SearchStore.newestEvents`: a walk along an index that has the names.
    package func newestEvents(_ search: EventSearch, limit: Int) async throws -> FoundEvents {
        let limit = min(max(0, limit), EventSearch.pageMax)
        return try await reading { db, lists in
            let last = try search.after.map { after in
                try Row.fetchOne(db.cachedStatement(sql: EventCandidates.placeSQL), arguments: [after, search.app])
            }
            if case .some(.none) = last { return FoundEvents(events: [], next: nil) }
            let candidates = EventCandidates(search, after: last ?? nil)
            let found = try Int64.fetchAll(
                db.cachedStatement(sql: candidates.pageSQL), arguments: candidates.arguments(limit: limit + 1))
            let statement = try db.cachedStatement(sql: "SELECT * FROM event WHERE rowid = ?")
            let rows = try found.prefix(limit).compactMap { try Row.fetchOne(statement, arguments: [$0]) }
            let events = rows.compactMap { lists.event($0) }
            if found.count > limit { return FoundEvents(events: events, next: rows.last?["id"]) }
            // The last one that was looked at, if there are more behind it.
            let cut =
                search.name == nil
                ? nil : try String.fetchOne(db.cachedStatement(sql: candidates.cutSQL), arguments: candidates.cutArguments)
            return FoundEvents(events: events, next: cut)
        }
    }
}

/// The events that a search for the newest ones looks at.
private struct EventCandidates {
    private let filter: String
    private let order: String
    private let name: String
    private var candidate: StatementArguments
    private let named: StatementArguments
    private let most: Int

    /// The place of an event in both orders.
    static let placeSQL = "SELECT rowid AS row, committed_at, name, channel, sequence FROM event WHERE id = ? AND app = ?"

    /// - Parameter last: of `placeSQL`.
    init(_ search: EventSearch, after last: Row?) {
        if let channel = search.channel {
            filter = "app = ? AND channel = ?" + (last == nil ? "" : " AND sequence < ?")
            order = "sequence DESC"
            candidate = [search.app, channel]
            if let last { candidate += [last["sequence"] as Int64] }
            most = EventSearch.channelCandidatesMax
        } else {
            filter = "app = ?" + (last == nil ? "" : " AND (committed_at, name, rowid) < (?, ?, ?)")
            order = "committed_at DESC, name DESC, rowid DESC"
            candidate = [search.app]
            if let last { candidate += [last["committed_at"] as Int64, last["name"] as String, last["row"] as Int64] }
            most = EventSearch.candidatesMax
        }
        switch search.name {
        case let text? where search.isBeginning:
            name = "name >= ? AND name < ?"
            named = [text, text.endOfBeginnings]
        case let text?:
            name = "name = ?"
            named = [text]
        case nil:
            name = "1"
            named = []
        }
    }

    var pageSQL: String {
        "SELECT row FROM (SELECT rowid AS row, name FROM event WHERE \(filter) ORDER BY \(order) LIMIT ?) WHERE \(name) LIMIT ?"
    }

    func arguments(limit: Int) -> StatementArguments { candidate + [most] + named + [limit] }

    /// The last candidate, if there are as many as may be looked at.
    var cutSQL: String { "SELECT id FROM event WHERE \(filter) ORDER BY \(order) LIMIT 1 OFFSET ?" }
    var cutArguments: StatementArguments { candidate + [most - 1] }
}
