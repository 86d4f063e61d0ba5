import Foundation
import GRDB
package import HubDelivery

extension SQLiteStore {
    /// `WebhookStore.updateWebhooks`: one row per batch, all in one transaction.
    package func updateWebhooks(adding batches: [WebhookBatch], removing rows: [Int64], marks: [WebhookMark]) async throws -> [Int64] {
        assert(marks.isEmpty, "marks are for nodes that share a store")
        if batches.isEmpty, rows.isEmpty { return [] }
        return try await write(rows: batches.count + rows.count) { db in
            for row in rows {
                try db.cachedStatement(sql: "DELETE FROM webhook WHERE number = ?").execute(arguments: [row])
            }
            return try batches.map { batch in
                try db.cachedStatement(
                    sql: "INSERT INTO webhook (app, url, key, signature, time_ms, body) VALUES (?, ?, ?, ?, ?, ?)"
                ).execute(arguments: [
                    batch.app, batch.url, batch.key, batch.signature, batch.timeMilliseconds, Data(batch.body),
                ])
                assert(db.changesCount == 1, "a batch of webhooks was written into \(db.changesCount) rows")
                return db.lastInsertedRowID
            }
        }
    }

    /// `WebhookStore.webhooks`: a walk along the row numbers.
    package func webhooks(after row: Int64, limit: Int) async throws -> [StoredWebhook] {
        try await read { db in
            try Row.fetchAll(
                db.cachedStatement(sql: "SELECT * FROM webhook WHERE number > ? ORDER BY number LIMIT ?"), arguments: [row, limit]
            ).map { row in
                StoredWebhook(
                    row: row["number"],
                    batch: WebhookBatch(
                        app: row["app"], url: row["url"], key: row["key"], signature: row["signature"],
                        timeMilliseconds: row["time_ms"], body: Array(row["body"] as Data)))
            }
        }
    }
}
