import GRDB
import HubDelivery

extension SQLiteStore {
    /// `OnceStore.sentOnce`: one look-up per user.
    package func sentOnce(app: String, key: String, users: [String]) async throws -> Set<String> {
        if users.isEmpty { return [] }
        return try await read { db in
            let statement = try db.cachedStatement(sql: "SELECT 1 FROM sent_once WHERE app = ? AND key = ? AND user = ?")
            return Set(try users.filter { try Int.fetchOne(statement, arguments: [app, key, $0]) != nil })
        }
    }

    /// - Throws: `AlreadySent` if the key was used for one of the users.
    static func insert(_ once: OnceKey, app: String, _ db: Database) throws {
        let statement = try db.cachedStatement(
            sql: "INSERT INTO sent_once (app, key, user) VALUES (?, ?, ?) ON CONFLICT (app, key, user) DO NOTHING")
        for user in once.users {
            try statement.execute(arguments: [app, once.key, user])
            if db.changesCount == 0 { throw AlreadySent() }
        }
    }
}
