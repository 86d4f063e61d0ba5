import Foundation
import GRDB
package import HubDelivery

extension SQLiteStore {
    /// `DeliveryStore.answer`: one look-up by key.
    package func answer(app: String, key: String, since cutoff: Int64) async throws -> AnswerRecord? {
        try await read { db in
            try Row.fetchOne(
                db.cachedStatement(sql: "SELECT * FROM answer WHERE app = ? AND key = ? AND answered_at >= ?"),
                arguments: [app, key, cutoff]
            ).map { row in
                AnswerRecord(
                    app: row["app"], key: row["key"], requestDigest: [UInt8](row["request_digest"] as Data), status: row["status"],
                    contentType: row["content_type"], body: [UInt8](row["body"] as Data), answeredAt: row["answered_at"])
            }
        }
    }

    /// `DeliveryStore.pruneAnswers`: counts all answers, in parallel with the writer.
    package func pruneAnswers(
        before cutoff: Int64, keeping countMax: Int, limit: Int
    ) async throws -> (expired: Int, displaced: Int) {
        guard limit > 0 else { return (0, 0) }
        // Counted outside the writer, because it reads the whole index. Answers that arrive meanwhile count the next time.
        let count = try await read { db in try Int.fetchOne(db.cachedStatement(sql: "SELECT COUNT(*) FROM answer")) ?? 0 }
        return try await write { db in
            try db.cachedStatement(
                sql: """
                    DELETE FROM answer WHERE rowid IN (
                      SELECT rowid FROM answer WHERE answered_at < ? ORDER BY answered_at LIMIT ?)
                    """
            ).execute(arguments: [cutoff, limit])
            let expired = db.changesCount
            assert(expired <= limit, "\(expired) answers were deleted, at most \(limit) were to be")
            let surplus = min(count - expired - countMax, limit)
            guard surplus > 0 else { return (expired, 0) }
            try db.cachedStatement(
                sql: "DELETE FROM answer WHERE rowid IN (SELECT rowid FROM answer ORDER BY answered_at, rowid LIMIT ?)"
            ).execute(arguments: [surplus])
            return (expired, db.changesCount)
        }
    }

    static func insert(_ answer: AnswerRecord, _ db: Database) throws {
        try db.cachedStatement(
            sql: """
                INSERT OR REPLACE INTO answer (app, key, request_digest, status, content_type, body, answered_at)
                VALUES (?, ?, ?, ?, ?, ?, ?)
                """
        ).execute(arguments: [
            answer.app, answer.key, Data(answer.requestDigest), answer.status, answer.contentType, Data(answer.body), answer.answeredAt,
        ])
        assert(db.changesCount == 1, "an answer was written into \(db.changesCount) rows")
    }
}
