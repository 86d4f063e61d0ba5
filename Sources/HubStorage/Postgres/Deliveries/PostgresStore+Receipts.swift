package import HubDelivery

extension PostgresStore {
    /// `ReceiptStore.receiptTarget`: one look-up, and one in the event's list.
    package func receiptTarget(event: String, app: String, user: String) async throws -> ReceiptTarget? {
        try await reading { tx, lists in
            let row = try tx.query(
                """
                SELECT f.snapshot, \(EventReader.columns) FROM tandem.event e JOIN tandem.fanout f ON f.event = e.id AND f.day = e.day
                WHERE e.id = $1 AND e.app = $2
                """, [.text(event), .text(app)]
            ).first
            guard let row, let place = try lists.list(row.int("snapshot"))?.place(of: user),
                let event = lists.event({ () throws(StorageError) in try EventReader.event(row) })
            else { return nil }
            return ReceiptTarget(event: event, recipient: place)
        }
    }

    /// Tries the user's newest events until one yields the id, because an id does not name its event.
    package func eventID(nid: String, app: String, user: String) async throws -> String? {
        try await read { tx in
            func find(_ sql: String, _ values: [PostgresValue]) throws -> String? {
                try tx.query(sql, values).map { $0.text("event") }.first { NotificationID.make(event: $0, app: app, user: user) == nid }
            }
            return try find(
                """
                SELECT f.event FROM tandem.snapshot_user u JOIN tandem.fanout f ON f.snapshot = u.snapshot AND f.day = u.day
                WHERE u.user_id = $1 AND f.app = $2 ORDER BY f.number DESC LIMIT $3
                """, [.text(user), .text(app), .int(SQLiteStore.receiptCandidatesMax)])
                ?? find(
                    "SELECT event FROM tandem.fanout WHERE app = $1 AND is_large ORDER BY number DESC LIMIT $2",
                    [.text(app), .int(SQLiteStore.receiptCandidatesMax)])
        }
    }
}
