package import HubDelivery

extension PostgresStore {
    /// `DeliveryStore.answer`: the newest row of the key, among the days since `cutoff`.
    package func answer(app: String, key: String, since cutoff: Int64) async throws -> AnswerRecord? {
        try await read { tx in
            try tx.query(
                """
                SELECT request_digest, status, content_type, body, answered_at FROM tandem.answer
                WHERE app = $1 AND key = $2 AND answered_at >= $3 AND day >= $4::bigint::integer ORDER BY answered_at DESC LIMIT 1
                """, [.text(app), .text(key), .int(cutoff), .int(Int64(Self.day(cutoff)))]
            ).first.map { row in
                AnswerRecord(
                    app: app, key: key, requestDigest: row.bytes("request_digest"), status: Int(row.int("status")),
                    contentType: row.text("content_type"), body: row.bytes("body"), answeredAt: row.int("answered_at"))
            }
        }
    }

    /// `DeliveryStore.pruneAnswers`: expired answers go with their day, and are never counted as expired here. A surplus of living ones is
    /// exceptional and deleted row by row.
    package func pruneAnswers(
        before cutoff: Int64, keeping countMax: Int, limit: Int
    ) async throws -> (expired: Int, displaced: Int) {
        guard limit > 0 else { return (0, 0) }
        let living: [PostgresValue] = [.int(cutoff), .int(Int64(Self.day(cutoff)))]
        // Apart from the writer, because a count reads a whole day.
        return try await maintain { tx in
            let count = try tx.query(
                "SELECT count(*) AS count FROM tandem.answer WHERE answered_at >= $1 AND day >= $2::bigint::integer", living
            ).first?.int("count")
            let surplus = min(Int(count ?? 0) - countMax, limit)
            guard surplus > 0 else { return (0, 0) }
            let deleted = try tx.query(
                """
                DELETE FROM tandem.answer AS answer USING (
                  SELECT day, app, key, answered_at FROM tandem.answer
                  WHERE answered_at >= $1 AND day >= $2::bigint::integer ORDER BY answered_at LIMIT $3) AS oldest
                WHERE answer.day = oldest.day AND answer.app = oldest.app AND answer.key = oldest.key
                  AND answer.answered_at = oldest.answered_at
                """, living + [.int(surplus)])
            return (0, deleted.written)
        }
    }

    // MARK: Inside a transaction

    /// Days of `write` for these answers.
    static func days(of answers: [AnswerRecord]) -> Set<Int32> { Set(answers.map { day($0.answeredAt) }) }

    /// Statement that adds answers; nil for none. A row added later hides the key's earlier ones.
    static func statement(for answers: [AnswerRecord]) -> PostgresStatement? {
        if answers.isEmpty { return nil }
        return PostgresStatement(
            """
            INSERT INTO tandem.answer (day, app, key, request_digest, status, content_type, body, answered_at)
            SELECT day::integer, app, key, digest, status, type, body, at
            FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bytea[], $5::bigint[], $6::text[], $7::bytea[], $8::bigint[])
              AS given (day, app, key, digest, status, type, body, at)
            """,
            [
                .ints(answers.map { Int64(day($0.answeredAt)) }), .texts(answers.map { $0.app }), .texts(answers.map { $0.key }),
                .blobs(answers.map { $0.requestDigest }), .ints(answers.map { Int64($0.status) }),
                .texts(answers.map { $0.contentType }), .blobs(answers.map { $0.body }), .ints(answers.map { $0.answeredAt }),
            ])
    }

    /// Removes answers whose commit was carried out without an answer, for `PostgresTransaction.onUnknown`.
    static func takeBack(_ answers: [AnswerRecord], _ tx: PostgresTransaction) {
        if answers.isEmpty { return }
        tx.queue(
            """
            DELETE FROM tandem.answer AS answer
            USING unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[]) AS lost (day, app, key, at)
            WHERE answer.day = lost.day::integer AND answer.app = lost.app AND answer.key = lost.key AND answer.answered_at = lost.at
            """,
            [
                .ints(answers.map { Int64(day($0.answeredAt)) }), .texts(answers.map { $0.app }), .texts(answers.map { $0.key }),
                .ints(answers.map { $0.answeredAt }),
            ])
    }
}
