import HubCore
package import HubDelivery

extension PostgresStore {
    /// `WebhookStore.updateWebhooks`: one row per batch, and one for its end, all in one round trip.
    package func updateWebhooks(adding batches: [WebhookBatch], removing rows: [Int64]) async throws -> [Int64] {
        if batches.isEmpty, rows.isEmpty { return [] }
        let today = Self.day(time.wallMilliseconds)
        let days = Set(batches.map { Self.day($0.timeMilliseconds) }).union([today])
        return try await write(rows: batches.count + rows.count, days: days) { tx in
            if !rows.isEmpty { Self.end(rows, on: today, tx) }
            if batches.isEmpty { return [] }
            let added = Self.statement(adding: batches)
            let numbers = try tx.query(added.sql, added.values).map { $0.int("number") }.sorted()
            assert(numbers.count == batches.count, "\(batches.count) batches of webhooks were written into \(numbers.count) rows")
            tx.onUnknown { tx in Self.end(numbers, on: today, tx) }
            return numbers
        }
    }

    /// `WebhookStore.webhooks`: a walk along the numbers of the days that have not ended. The bodies of ended batches are not read.
    package func webhooks(after row: Int64, limit: Int) async throws -> [StoredWebhook] {
        guard limit > 0 else { return [] }
        // Longer than a call may last, after days with many.
        return try await maintain { tx in
            let days = try tx.query("SELECT day FROM tandem.day WHERE NOT is_ended ORDER BY day").map { $0.int("day") }
            guard let first = days.first else { return [] }
            // An end lies on an earlier day than its batch if the clock was set back.
            return try tx.query(
                """
                SELECT number, app, url, key, signature, time_ms, body FROM tandem.webhook JOIN (
                  SELECT day, number FROM tandem.webhook AS stored
                  WHERE number > $1 AND day = ANY($3) AND NOT EXISTS (
                    SELECT FROM tandem.webhook_end AS ended WHERE ended.number = stored.number AND ended.day >= $4)
                  ORDER BY number LIMIT $2) AS open USING (day, number)
                WHERE day = ANY($3) ORDER BY number
                """, [.int(row), .int(limit), .ints(days.map { $0 }), .int(first - 1)]
            ).map { row in
                StoredWebhook(
                    row: row.int("number"),
                    batch: WebhookBatch(
                        app: row.text("app"), url: row.text("url"), key: row.text("key"), signature: row.text("signature"),
                        timeMilliseconds: row.int("time_ms"), body: row.bytes("body")))
            }
        }
    }

    /// Batches in their order: the sequence numbers the rows as they come.
    private static func statement(adding batches: [WebhookBatch]) -> PostgresStatement {
        PostgresStatement(
            """
            INSERT INTO tandem.webhook (day, app, url, key, signature, time_ms, body)
            SELECT day::integer, app, url, key, signature, time_ms, body
            FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bytea[])
              AS given (day, app, url, key, signature, time_ms, body)
            RETURNING number
            """,
            [
                .ints(batches.map { Int64(day($0.timeMilliseconds)) }), .texts(batches.map { $0.app }), .texts(batches.map { $0.url }),
                .texts(batches.map { $0.key }), .texts(batches.map { $0.signature }), .ints(batches.map { $0.timeMilliseconds }),
                .blobs(batches.map { $0.body }),
            ])
    }

    /// Ends batches. A number that was never given must not end a later batch.
    private static func end(_ rows: [Int64], on day: Int32, _ tx: PostgresTransaction) {
        tx.queue(
            """
            INSERT INTO tandem.webhook_end (day, number) SELECT $1::bigint::integer, number FROM unnest($2::bigint[]) AS number
            WHERE number <= (SELECT last_value FROM tandem.webhook_number)
            """, [.int(Int64(day)), .ints(rows.map { $0 })])
    }
}
