package import HubDelivery

extension PostgresStore {
    /// `ScheduledStore.schedule`: one statement for all publishes, and a count of the waiting ones of their apps.
    package func schedule(_ publishes: [ScheduledPublish], answers: [AnswerRecord]) async throws {
        try await write(rows: publishes.count + answers.count, days: Self.days(of: answers)) { tx in
            var statements = [Self.statement(inserting: publishes), Self.statement(countingOf: Set(publishes.map(\.app)))]
            if let answered = Self.statement(for: answers) { statements.append(answered) }
            let results = try tx.all(statements)
            assert(results[0].written == publishes.count, "\(publishes.count) publishes were written into \(results[0].written) rows")
            if let full = results[1].first { throw ScheduleError.full(app: full.text("app")) }
            tx.onUnknown { tx in
                tx.queue("DELETE FROM tandem.scheduled WHERE id = ANY($1)", [.texts(publishes.map { $0.id })])
                Self.takeBack(answers, tx)
            }
        }
    }

    /// `ScheduledStore.dueScheduled`: a walk along the index of due times.
    package func dueScheduled(now: Int64, limit: Int) async throws -> [ScheduledPublish] {
        guard limit > 0 else { return [] }
        return try await read { tx in
            try tx.query(
                """
                SELECT \(Self.scheduledColumns) FROM tandem.scheduled
                WHERE state = 'waiting' AND deliver_at <= $1 ORDER BY deliver_at, id LIMIT $2
                """, [.int(now), .int(limit)]
            ).map(Self.scheduled(row:))
        }
    }

    /// `ScheduledStore.nextScheduledAt`: the first entry of the index of due times.
    package func nextScheduledAt() async throws -> Int64? {
        try await read { tx in
            try tx.query("SELECT min(deliver_at) AS at FROM tandem.scheduled WHERE state = 'waiting'").first?.intOrNil("at")
        }
    }

    /// `ScheduledStore.scheduled`: a walk along the app's index of due times.
    package func scheduled(
        app: String, after other: (deliverAt: Int64, id: String)?, limit: Int
    ) async throws -> [ScheduledPublish] {
        guard limit > 0 else { return [] }
        return try await read { tx in
            try tx.query(
                """
                SELECT \(Self.scheduledColumns) FROM tandem.scheduled
                WHERE state = 'waiting' AND app = $1 AND (deliver_at, id) > ($2, $3) ORDER BY deliver_at, id LIMIT $4
                """, [.text(app), .int(other?.deliverAt ?? .min), .text(other?.id ?? ""), .int(limit)]
            ).map(Self.scheduled(row:))
        }
    }

    /// `ScheduledStore.failedScheduled`: a walk along the index of failed publishes.
    package func failedScheduled(app: String, limit: Int) async throws -> [ScheduledPublish] {
        guard limit > 0 else { return [] }
        return try await read { tx in
            try tx.query(
                """
                SELECT \(Self.scheduledColumns) FROM tandem.scheduled
                WHERE app = $1 AND state = 'failed' ORDER BY ended_at DESC, id LIMIT $2
                """, [.text(app), .int(limit)]
            ).map(Self.scheduled(row:))
        }
    }

    /// `ScheduledStore.scheduled`: one look-up by key.
    package func scheduled(app: String, id: String) async throws -> ScheduledPublish? {
        try await read { tx in
            try tx.query("SELECT \(Self.scheduledColumns) FROM tandem.scheduled WHERE id = $1 AND app = $2", [.text(id), .text(app)])
                .first.map(Self.scheduled(row:))
        }
    }

    /// `ScheduledStore.cancelScheduled`: one row by key, locked before it is looked at.
    package func cancelScheduled(app: String, id: String, now: Int64) async throws -> ScheduledPublish.State? {
        try await write { tx in
            let ending = ScheduledEnding(state: .cancelled, app: app, ends: [(id: id, at: now, outcome: nil)])
            let results = try tx.all([
                PostgresStatement("SELECT state FROM tandem.scheduled WHERE id = $1 AND app = $2 FOR UPDATE", [.text(id), .text(app)]),
                ending.statement,
            ])
            guard let row = results[0].first else { return nil }
            let state: ScheduledPublish.State = try row.value("state", of: "scheduled")
            let wasWaiting = !ending.ended(results[1], tx).isEmpty
            assert(wasWaiting == (state == .waiting), "publish \(id) was \(state) and is cancelled: \(wasWaiting)")
            return state
        }
    }

    /// `ScheduledStore.failScheduled`: one row by key.
    package func failScheduled(id: String, outcome: String, now: Int64) async throws {
        try await write { tx in
            let ending = ScheduledEnding(state: .failed, app: nil, ends: [(id: id, at: now, outcome: outcome)])
            _ = ending.ended(try tx.query(ending.statement.sql, ending.statement.values), tx)
        }
    }

    // MARK: Inside a transaction

    /// Ends publishes with the commit of their events.
    /// - Throws: `ScheduleError.notWaiting` with all that do not wait.
    static func take(_ scheduled: [ScheduledTake], _ tx: PostgresTransaction) throws {
        if scheduled.isEmpty { return }
        let ending = ScheduledEnding(
            state: .published, app: nil, ends: scheduled.map { (id: $0.id, at: $0.at, outcome: $0.events.joined(separator: ",")) })
        var ended = ending.ended(try tx.query(ending.statement.sql, ending.statement.values), tx)
        let missing = scheduled.filter { ended.remove($0.id) == nil }
        if !missing.isEmpty { throw ScheduleError.notWaiting(missing.map(\.id)) }
    }

    /// Removes publishes that ended before `cutoff`, the earliest first.
    /// - Returns: the number of removed ones.
    static func pruneScheduled(before cutoff: Int64, limit: Int, _ tx: PostgresTransaction) throws -> Int {
        try tx.query(
            """
            DELETE FROM tandem.scheduled WHERE id IN (
              SELECT id FROM tandem.scheduled WHERE ended_at IS NOT NULL AND ended_at < $1 ORDER BY ended_at LIMIT $2)
            """, [.int(cutoff), .int(limit)]
        ).written
    }

    private static func statement(inserting publishes: [ScheduledPublish]) -> PostgresStatement {
        PostgresStatement(
            """
            INSERT INTO tandem.scheduled (\(scheduledColumns))
            SELECT * FROM unnest(
              $1::text[], $2::text[], $3::bigint[], $4::bytea[], $5::text[], $6::bigint[], $7::text[], $8::bigint[], $9::text[])
            """,
            [
                .texts(publishes.map { $0.id }), .texts(publishes.map { $0.app }), .ints(publishes.map { $0.deliverAt }),
                .blobs(publishes.map { $0.request }), .texts(publishes.map { $0.idempotencyKey }),
                .ints(publishes.map { $0.createdAt }), .texts(publishes.map { $0.state.rawValue }),
                .ints(publishes.map { $0.endedAt }), .texts(publishes.map { $0.outcome }),
            ])
    }

    /// An app with more waiting publishes than may wait.
    private static func statement(countingOf apps: Set<String>) -> PostgresStatement {
        PostgresStatement(
            """
            SELECT app FROM tandem.scheduled WHERE app = ANY($1) AND state = 'waiting'
            GROUP BY app HAVING count(*) > $2 ORDER BY app LIMIT 1
            """, [.texts(apps.map { $0 }), .int(ScheduledPublish.waitingMax)])
    }

    private static var scheduledColumns: String {
        "id, app, deliver_at, request, idempotency_key, created_at, state, ended_at, outcome"
    }

    private static func scheduled(row: PostgresRow) throws(StorageError) -> ScheduledPublish {
        ScheduledPublish(
            id: row.text("id"), app: row.text("app"), deliverAt: row.int("deliver_at"), request: row.bytes("request"),
            idempotencyKey: row.textOrNil("idempotency_key"), createdAt: row.int("created_at"),
            state: try row.value("state", of: "scheduled"), endedAt: row.intOrNil("ended_at"), outcome: row.textOrNil("outcome"))
    }
}

/// An end of waiting publishes, which deletes their requests.
private struct ScheduledEnding {
    let state: ScheduledPublish.State
    let statement: PostgresStatement

    /// - Parameter app: the publishes' app; nil for any.
    init(state: ScheduledPublish.State, app: String?, ends: [(id: String, at: Int64, outcome: String?)]) {
        self.state = state
        // Locked in the order of their ids, so that two hubs do not wait for each other.
        statement = PostgresStatement(
            """
            WITH waiting AS (
              SELECT id, request FROM tandem.scheduled
              WHERE id = ANY($1) AND state = 'waiting' AND ($5::text IS NULL OR app = $5) ORDER BY id FOR UPDATE)
            UPDATE tandem.scheduled AS publish SET state = $4, request = '', ended_at = ending.at, outcome = ending.outcome
            FROM waiting JOIN unnest($1::text[], $2::bigint[], $3::text[]) AS ending (id, at, outcome) ON ending.id = waiting.id
            WHERE publish.id = waiting.id
            RETURNING publish.id, waiting.request
            """,
            [
                .texts(ends.map { $0.id }), .ints(ends.map { $0.at }), .texts(ends.map { $0.outcome }), .text(state.rawValue), .text(app),
            ])
    }

    /// The ids that had been waiting.
    /// - Parameter rows: the statement's result. Its requests are written again if the answer to the commit is lost.
    func ended(_ rows: PostgresRows, _ tx: PostgresTransaction) -> Set<String> {
        let (ids, requests) = (rows.map { $0.text("id") }, rows.map { $0.bytes("request") })
        if ids.isEmpty { return [] }
        tx.onUnknown { [state] tx in
            tx.queue(
                """
                UPDATE tandem.scheduled AS publish SET state = 'waiting', request = ended.request, ended_at = NULL, outcome = NULL
                FROM unnest($1::text[], $2::bytea[]) AS ended (id, request) WHERE publish.id = ended.id AND publish.state = $3
                """, [.texts(ids.map { $0 }), .blobs(requests.map { $0 }), .text(state.rawValue)])
        }
        return Set(ids)
    }
}
