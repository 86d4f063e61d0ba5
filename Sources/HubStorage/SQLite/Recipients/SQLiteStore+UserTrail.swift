import GRDB
package import HubDelivery

extension SQLiteStore {
    /// `TrailStore.trail(app:user:before:limit:)`: all of the user's events with a short list before the position, and a bounded number of
    /// events with a long list.
    package func trail(app: String, user: String, before position: Int64, limit: Int) async throws -> UserTrail {
        let limit = min(limit, UserTrail.pageMax)
        guard limit > 0 else { return UserTrail(entries: [], next: position) }
        let leases = leases.current
        return try await reading { db, lists in
            var search = NewestFirst(limit: limit)
            search.short = try Row.fetchAll(
                db.cachedStatement(sql: Self.newestOwnSQL), arguments: [user, app, position, limit + 1]
            ).map { ($0["number"], $0["event"]) }
            let rows = try Row.fetchCursor(
                db.cachedStatement(sql: Self.newestLargeSQL), arguments: [app, position, search.lowest])
            while let row = try rows.next() {
                let list: Int64 = row["snapshot"]
                guard search.looks(at: row["number"], listsRead: lists.readCount) else { break }
                if try lists.list(list)?.place(of: user) != nil { search.found(row["number"], row["event"]) }
            }
            let (page, next) = search.page()
            let entries = try page.compactMap { number, event in
                try Self.trail(db, event: event, users: [user], from: 0, limit: 1, leases, lists: &lists)
                    .map { UserTrail.Entry(position: number, trail: $0) }
            }
            return UserTrail(entries: entries, next: next)
        }
    }

    /// CROSS JOIN and the plus sign as in `ownEventsSQL`.
    private static var newestOwnSQL: String {
        """
        SELECT fanout.number, fanout.event FROM snapshot_user CROSS JOIN fanout ON fanout.snapshot = snapshot_user.snapshot
        WHERE snapshot_user.user = ? AND +fanout.app = ? AND fanout.number < ? ORDER BY fanout.number DESC LIMIT ?
        """
    }

    private static var newestLargeSQL: String {
        """
        SELECT number, event, snapshot FROM fanout WHERE app = ? AND is_large = 1 AND number < ? AND number >= ? ORDER BY number DESC
        """
    }
}
