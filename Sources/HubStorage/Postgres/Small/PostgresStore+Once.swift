import HubDelivery

extension PostgresStore {
    /// `OnceStore.sentOnce`: one look-up per user, in one statement.
    package func sentOnce(app: String, key: String, users: [String]) async throws -> Set<String> {
        if users.isEmpty { return [] }
        return try await read { tx in
            let rows = try tx.query(
                "SELECT user_id FROM tandem.sent_once WHERE app = $1 AND key = $2 AND user_id = ANY($3)",
                [.text(app), .text(key), .texts(users.map { $0 })])
            return Set(rows.map { $0.text("user_id") })
        }
    }

    /// Spends a key. Another hub that spends it for the same user waits for this transaction, and the other way round.
    /// - Throws: `AlreadySent` if the key was used for one of the users.
    static func insert(_ once: OnceKey, app: String, _ tx: PostgresTransaction) throws {
        // Written in one order, so that two hubs do not wait for each other.
        let users = once.users.sorted()
        let written = try tx.query(
            "INSERT INTO tandem.sent_once (app, key, user_id) SELECT $1, $2, unnest($3::text[]) ON CONFLICT (app, key, user_id) DO NOTHING",
            [.text(app), .text(once.key), .texts(users.map { $0 })]
        ).written
        guard written == users.count else { throw AlreadySent() }
        tx.onUnknown { tx in
            tx.queue(
                "DELETE FROM tandem.sent_once WHERE app = $1 AND key = $2 AND user_id = ANY($3)",
                [.text(app), .text(once.key), .texts(users.map { $0 })])
        }
    }
}
