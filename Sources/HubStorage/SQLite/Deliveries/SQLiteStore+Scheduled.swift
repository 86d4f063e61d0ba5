import Foundation
import GRDB
package import HubDelivery

extension SQLiteStore {
    /// `ScheduledStore.schedule`: one row per publish, and a count of the app's waiting ones.
    package func schedule(_ publishes: [ScheduledPublish], answers: [AnswerRecord]) async throws {
        try await write(rows: publishes.count + answers.count) { db in
            let statement = try db.cachedStatement(
                sql: """
                    INSERT INTO scheduled (id, app, deliver_at, request, idempotency_key, created_at, state, ended_at, outcome)
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                    """)
            for publish in publishes {
                try statement.execute(arguments: [
                    publish.id, publish.app, publish.deliverAt, Data(publish.request), publish.idempotencyKey, publish.createdAt,
                    publish.state.rawValue, publish.endedAt, publish.outcome,
                ])
            }
            for app in Set(publishes.map(\.app)) {
                let waiting = try Int.fetchOne(
                    db.cachedStatement(sql: "SELECT COUNT(*) FROM scheduled WHERE app = ? AND state = 'waiting'"), arguments: [app])
                if waiting ?? 0 > ScheduledPublish.waitingMax { throw ScheduleError.full(app: app) }
            }
            for answer in answers { try Self.insert(answer, db) }
        }
    }

    /// `ScheduledStore.dueScheduled`: a walk along the index of due times.
    package func dueScheduled(now: Int64, limit: Int) async throws -> [ScheduledPublish] {
        guard limit > 0 else { return [] }
        return try await read { db in
            try Row.fetchAll(
                db.cachedStatement(sql: SQLiteStore.dueScheduledSQL), arguments: [now, limit]
            ).map(Self.scheduled(row:))
        }
    }

    /// `ScheduledStore.nextScheduledAt`: the first entry of the index of due times.
    package func nextScheduledAt() async throws -> Int64? {
        try await read { db in
            try Int64.fetchOne(db.cachedStatement(sql: SQLiteStore.nextScheduledSQL))
        }
    }

    /// `ScheduledStore.scheduled`: a walk along the app's index of due times.
    package func scheduled(
        app: String, after other: (deliverAt: Int64, id: String)?, limit: Int
    ) async throws -> [ScheduledPublish] {
        guard limit > 0 else { return [] }
        return try await read { db in
            try Row.fetchAll(
                db.cachedStatement(sql: SQLiteStore.scheduledOfAppSQL),
                arguments: [app, other?.deliverAt ?? .min, other?.id ?? "", limit]
            ).map(Self.scheduled(row:))
        }
    }

    /// `ScheduledStore.failedScheduled`: a walk along the index of failed publishes.
    package func failedScheduled(app: String, limit: Int) async throws -> [ScheduledPublish] {
        guard limit > 0 else { return [] }
        return try await read { db in
            try Row.fetchAll(
                db.cachedStatement(
                    sql: "SELECT * FROM scheduled WHERE app = ? AND state = 'failed' ORDER BY ended_at DESC, id LIMIT ?"),
                arguments: [app, limit]
            ).map(Self.scheduled(row:))
        }
    }

    /// `ScheduledStore.scheduled`: one look-up by key.
    package func scheduled(app: String, id: String) async throws -> ScheduledPublish? {
        try await read { db in
            try Row.fetchOne(db.cachedStatement(sql: "SELECT * FROM scheduled WHERE id = ? AND app = ?"), arguments: [id, app])
                .map(Self.scheduled(row:))
        }
    }

    /// `ScheduledStore.cancelScheduled`: one row by key.
    package func cancelScheduled(app: String, id: String, now: Int64) async throws -> ScheduledPublish.State? {
        try await write { db in
            let row = try Row.fetchOne(
                db.cachedStatement(sql: "SELECT * FROM scheduled WHERE id = ? AND app = ?"), arguments: [id, app])
            guard let row else { return nil }
            let state = try Self.scheduled(row: row).state
            let wasWaiting = try Self.end(id, .cancelled, outcome: nil, now: now, db)
            assert(wasWaiting == (state == .waiting), "publish \(id) was \(state) and is cancelled: \(wasWaiting)")
            return state
        }
    }

    /// `ScheduledStore.failScheduled`: one row by key.
    package func failScheduled(id: String, outcome: String, now: Int64) async throws {
        try await write { db in _ = try Self.end(id, .failed, outcome: outcome, now: now, db) }
    }

    static var dueScheduledSQL: String {
        "SELECT * FROM scheduled WHERE state = 'waiting' AND deliver_at <= ? ORDER BY deliver_at, id LIMIT ?"
    }

    static var nextScheduledSQL: String { "SELECT MIN(deliver_at) FROM scheduled WHERE state = 'waiting'" }

    static var scheduledOfAppSQL: String {
        """
        SELECT * FROM scheduled WHERE state = 'waiting' AND app = ? AND (deliver_at, id) > (?, ?) ORDER BY deliver_at, id LIMIT ?
        """
    }

    // MARK: Inside a transaction

    static func take(_ scheduled: [ScheduledTake], _ db: Database) throws {
        let missing = try scheduled.filter { take in
            try !Self.end(take.id, .published, outcome: take.events.joined(separator: ","), now: take.at, db)
        }
        if !missing.isEmpty { throw ScheduleError.notWaiting(missing.map(\.id)) }
    }

    static func pruneScheduled(before cutoff: Int64, limit: Int, _ db: Database) throws -> Int {
        try db.cachedStatement(
            sql: """
                DELETE FROM scheduled WHERE rowid IN (
                  SELECT rowid FROM scheduled WHERE ended_at IS NOT NULL AND ended_at < ? ORDER BY ended_at LIMIT ?)
                """
        ).execute(arguments: [cutoff, limit])
        return db.changesCount
    }

    /// Ends a waiting publish and deletes its request.
    /// - Returns: whether it was waiting.
    private static func end(
        _ id: String, _ state: ScheduledPublish.State, outcome: String?, now: Int64, _ db: Database
    ) throws -> Bool {
        try db.cachedStatement(
            sql: "UPDATE scheduled SET state = ?, request = x'', ended_at = ?, outcome = ? WHERE id = ? AND state = 'waiting'"
        ).execute(arguments: [state.rawValue, now, outcome, id])
        assert(db.changesCount <= 1, "publish \(id) ended in \(db.changesCount) rows")
        return db.changesCount > 0
    }

    private static func scheduled(row: Row) throws(StorageError) -> ScheduledPublish {
        ScheduledPublish(
            id: row["id"], app: row["app"], deliverAt: row["deliver_at"], request: [UInt8](row["request"] as Data),
            idempotencyKey: row["idempotency_key"], createdAt: row["created_at"],
            state: try decodeColumn(row, "state", of: "scheduled"), endedAt: row["ended_at"], outcome: row["outcome"])
    }
}
