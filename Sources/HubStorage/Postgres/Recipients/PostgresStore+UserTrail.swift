package import HubDelivery

extension PostgresStore {
    /// `TrailStore.trail(app:user:before:limit:)`: events with a short list by index, and a bounded number of events with a long one by a
    /// look into it. Each event of the page costs three queries.
    package func trail(app: String, user: String, before position: Int64, limit: Int) async throws -> UserTrail {
        let limit = min(limit, UserTrail.pageMax)
        guard limit > 0 else { return UserTrail(entries: [], next: position) }
        return try await reading { tx, lists in
            var search = NewestFirst(limit: limit)
            search.short = try tx.query(
                """
                SELECT f.number, f.event FROM tandem.snapshot_user u JOIN tandem.fanout f ON f.snapshot = u.snapshot AND f.day = u.day
                WHERE u.user_id = $1 AND f.app = $2 AND f.number < $3 ORDER BY f.number DESC LIMIT $4
                """, [.text(user), .text(app), .int(position), .int(limit + 1)]
            ).map { ($0.int("number"), $0.text("event")) }
            let large = try tx.query(
                """
                SELECT number, event, snapshot FROM tandem.fanout WHERE app = $1 AND is_large AND number < $2 AND number >= $3
                ORDER BY number DESC LIMIT $4
                """, [.text(app), .int(position), .int(search.lowest), .int(SQLiteStore.largeCandidatesMax + 1)])
            for index in 0..<large.count {
                let row = large[index]
                guard search.looks(at: row.int("number"), listsRead: lists.readCount) else { break }
                if try lists.list(row.int("snapshot"))?.place(of: user) != nil { search.found(row.int("number"), row.text("event")) }
            }
            let (page, next) = search.page()
            let entries = try page.compactMap { number, event in
                try Self.trail(event: event, users: [user], from: 0, limit: 1, tx, &lists)
                    .map { UserTrail.Entry(position: number, trail: $0) }
            }
            return UserTrail(entries: entries, next: next)
        }
    }
}
