import HubCore
package import HubDelivery

extension PostgresStore {
    /// `WebhookStore.updateWebhooks`: one row per batch, and one for its end, all in one round trip.
    package func updateWebhooks(adding batches: [WebhookBatch], removing rows: [Int64], marks: [WebhookMark]) async throws -> [Int64] {
        let partitions = Set(marks.map { Partition.ofWebhooks(app: $0.app) })
        if batches.isEmpty, rows.isEmpty { return [] }
        let today = Self.day(time.wallMilliseconds)
        let days = Set(batches.map { Self.day($0.timeMilliseconds) }).union([today])
        return try await write(rows: batches.count + rows.count, days: days) { [node] tx in
            // The fence, which came before, holds for what the node owns now.
            try node.require(partitions)
            for mark in marks { Self.set(mark, tx) }
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
        try await takeBack()
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

    /// `WebhookStore.webhookMark`.
    package func webhookMark(app: String) async throws -> WebhookMark? {
        try await read { tx in
            try tx.query(
                """
                SELECT place[1] AS told_ms, place[2] AS told, place[3] AS settled_ms, place[4] AS settled
                FROM tandem.webhook_mark WHERE app = $1
                """, [.text(app)]
            ).first.map { row in
                func id(_ milliseconds: String, _ number: String) -> StreamID {
                    StreamID(milliseconds: UInt64(row.int(milliseconds)), number: UInt64(row.int(number)))
                }
                return WebhookMark(app: app, told: id("told_ms", "told"), settled: id("settled_ms", "settled"))
            }
        }
    }

    /// Sets a mark. One that is taken back with its batches becomes the former one again.
    private static func set(_ mark: WebhookMark, _ tx: PostgresTransaction) {
        let place = PostgresValue.ints(
            [mark.told.milliseconds, mark.told.number, mark.settled.milliseconds, mark.settled.number].map { Int64($0) })
        tx.queue(
            """
            INSERT INTO tandem.webhook_mark AS known (app, place) VALUES ($1, $2)
            ON CONFLICT (app) DO UPDATE SET place = excluded.place, former = known.place
            """, [.text(mark.app), place])
        tx.onUnknown { tx in
            tx.queue(
                "UPDATE tandem.webhook_mark SET place = former WHERE app = $1 AND place = $2 AND former IS NOT NULL",
                [.text(mark.app), place])
            tx.queue("DELETE FROM tandem.webhook_mark WHERE app = $1 AND place = $2 AND former IS NULL", [.text(mark.app), place])
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
