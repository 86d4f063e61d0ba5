internal import HubCore
internal import HubDefinitions
package import HubDelivery
import Synchronization

extension PostgresStore {
    /// All or nothing, in one round trip and one for the end. An event with a known id fails the call.
    package func commit(
        _ batch: [EventCommit], answers: [AnswerRecord], scheduled: [ScheduledTake]
    ) async throws -> [EventRecord] {
        // Encoded on the caller's thread, because all callers share the writer's time.
        let events = batch.map(\.event)
        let pushes = WrittenRows(
            batch.flatMap(\.deliveries), numbers: numbers, ignoringKnown: false,
            days: Dictionary(events.map { ($0.id, Self.day($0.committedAt)) }, uniquingKeysWith: { _, new in new }))
        let fanouts = batch.compactMap { entry in
            entry.recipients.flatMap(RecipientColumns.init).map { (event: entry.event, columns: $0) }
        }
        let lists = fanouts.compactMap { self.lists.plan($0.columns.snapshot, day: Self.day($0.event.committedAt)) }
        let (ofEvents, ofFanouts) = (Self.writing(events), Self.writing(fanouts))
        var statements = [ofEvents].compactMap { $0 } + lists.flatMap(\.statements)
        let fanoutPlace = statements.count
        statements += [ofFanouts].compactMap { $0 } + pushes.statements + [Self.statement(for: answers)].compactMap { $0 }
        let rows = answers.count + scheduled.count + events.count + pushes.records.count + fanouts.count
        let days = Set(events.map { Self.day($0.committedAt) } + answers.map { Self.day($0.answeredAt) })
        // A direct send has no channel that somebody could own.
        let partitions = Set(
            events.filter { $0.channel != DirectSend.channel }.map { Partition.of(MemberPlace(app: $0.app, channel: $0.channel)) })
        let onces = batch.compactMap { entry in entry.once.map { (key: $0, app: entry.event.app) } }
        let (committed, places) = try await write(rows: rows, days: days) { [statements, node] tx in
            // The fence, which came before, holds for what the node owns now.
            try node.require(partitions)
            if !scheduled.isEmpty { try Self.take(scheduled, tx) }
            for once in onces { try Self.insert(once.key, app: once.app, tx) }
            let results = try tx.all(statements)
            tx.onUnknown { tx in try Self.remove(events, answers, tx) }
            var sequences: [String: Int64] = [:]
            if ofEvents != nil { for row in results[0].map({ ($0.text("id"), $0.int("sequence")) }) { sequences[row.0] = row.1 } }
            let committed = events.map { event in
                var event = event
                event.sequence = sequences[event.id] ?? 0
                assert(event.sequence > 0, "event \(event.id) was committed without a sequence")
                return event
            }
            return (committed, ofFanouts == nil ? [:] : Self.places(results[fanoutPlace]))
        }
        self.lists.committed(lists)
        recent.note(places)
        return committed
    }

    /// Open pushes that one step of `openDeliveries` looks through.
    private static let openStepMax = 20_000

    /// `DeliveryStore.openDeliveries`: a walk through the pushes that are not marked as ended. Leaves out people of other owners. Fails
    /// the unreadable ones.
    package func openDeliveries(limit: Int, isMeant: @escaping @Sendable (OpenPush) -> Bool) async throws -> [PushRecord] {
        let (leased, owned) = (leases.withLock { $0 }, node.owned)
        // A start waits for the whole of them: nothing tells open pushes apart before they are read.
        let found = try await read(within: PostgresMigrator.durationMax) { tx -> [StoredPush] in
            tx.queue(
                """
                DECLARE open NO SCROLL CURSOR FOR
                SELECT p.day, p.number, p.nid, p.device, p.app, p.user_id, coalesce(s.state, p.state) AS state
                \(OpenPushes.clause(days: "NOT d.is_ended")) ORDER BY coalesce(s.due_at, p.due_at)
                """)
            var (days, numbers) = ([Int64](), [Int64]())
            while numbers.count < limit {
                let rows = try tx.query("FETCH \(Self.openStepMax) FROM open")
                for row in (0..<rows.count).map({ rows[$0] }) where numbers.count < limit {
                    let push = OpenPush(
                        nid: row.text("nid"), device: DeviceColumn.read(row.text("device")).device, app: row.text("app"),
                        user: row.text("user_id"), state: PushState(rawValue: row.text("state")) ?? .due)
                    let place = MemberPlace(app: push.app, channel: push.user)
                    guard owned[Partition.of(place)] != nil, isMeant(push) else { continue }
                    days.append(row.int("day"))
                    numbers.append(row.int("number"))
                }
                if rows.count < Self.openStepMax { break }
            }
            tx.queue("CLOSE open")
            if numbers.isEmpty { return [] }
            // A look-up by key for each: a join might read the whole day.
            return try PushReader(tx).pushes(
                "true", [.ints(days), .ints(numbers)], tail: "ORDER BY due_at",
                pushes: """
                    unnest($1::bigint[], $2::bigint[]) AS o (day, number) CROSS JOIN LATERAL (
                      SELECT * FROM tandem.push k WHERE k.day = o.day::integer AND k.number = o.number LIMIT 1) p
                    """)
        }
        var open: [PushRecord] = []
        var ended: [PushRecord] = []
        for var push in found {
            push.record.firstAttemptAt = AttemptLog.firstStart(push.log)
            if push.problem != nil {
                // Unreadable deliveries end, so that the next start does not read them again.
                push.record.state = .failed
                ended.append(push.record)
            } else if push.record.outcome == PushSteps.receipt, !leased.contains(push.number) {
                // A receipt came during the attempt of an earlier process.
                push.record.state = .cancelled
                ended.append(push.record)
            } else {
                open.append(push.record)
            }
        }
        if !ended.isEmpty { try await update(ended) }
        for push in found { if let problem = push.problem { onUnreadableRow(problem) } }
        return open
    }

    /// `DeliveryStore.lease`: one statement, a step per delivery.
    package func lease(_ deliveries: [PushRecord]) async throws -> [PushRecord] {
        // Only the owner of a person sends their pushes.
        let owned = node.owned
        let deliveries = deliveries.filter { owned[Partition.of(MemberPlace(app: $0.app, channel: $0.user))] != nil }
        if deliveries.isEmpty { return [] }
        let days = Self.days(of: deliveries)
        let statement = PostgresStatement(
            """
            WITH w AS (
              SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[])
                WITH ORDINALITY AS w (event, user_id, device, due_at, attempts, place)),
            found AS (
              SELECT w.place, p.day, p.number, w.due_at, w.attempts,
                CASE WHEN s.number IS NULL THEN p.provider_id ELSE s.provider_id END AS provider_id,
                CASE WHEN s.number IS NULL THEN p.outcome ELSE s.outcome END AS outcome
              FROM w \(Self.joiningPush(days, at: 7))
              LEFT JOIN LATERAL (
                SELECT * FROM tandem.push_step t WHERE t.day = p.day AND t.push = p.number ORDER BY t.number DESC LIMIT 1) s ON true
              WHERE \(PushReader.isOpen)),
            added AS (
              INSERT INTO tandem.push_step (day, push, state, due_at, attempts, provider_id, outcome, is_final, owner)
              SELECT day, number, 'leased', due_at, attempts, provider_id, outcome, false, $6 FROM found)
            SELECT place, number FROM found ORDER BY place
            """,
            Self.names(of: deliveries) + [
                .ints(deliveries.map(\.dueAt)), .ints(deliveries.map { Int64($0.attempts) }), .int(process),
            ] + days)
        let leased = try await write(rows: deliveries.count) { tx in
            try tx.query(statement.sql, statement.values).map { row in
                var delivery = deliveries[Int(row.int("place")) - 1]
                delivery.row = row.int("number")
                return delivery
            }
        }
        leases.withLock { $0.formUnion(leased.compactMap(\.row)) }
        return leased
    }

    /// `DeliveryStore.update`: one statement. A push that ended meanwhile gets its attempt alone.
    @discardableResult
    package func update(_ deliveries: [PushRecord]) async throws -> [PushRecord] {
        if deliveries.isEmpty { return [] }
        let days = Self.days(of: deliveries)
        let statement = PostgresStatement(
            """
            WITH w AS (
              SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::text[], $8::text[],
                  $9::text[], $10::boolean[], $11::bigint[])
                WITH ORDINALITY AS w
                  (event, user_id, device, state, due_at, attempts, provider_id, outcome, log, is_final, expires_at, place)),
            found AS (
              SELECT w.*, p.day, p.number, p.app, p.nid, p.message IS NOT NULL AND NOT \(PushReader.isClear) AS is_notification,
                \(PushReader.isOpen) AS is_open, coalesce(s.state, p.state) AS old_state, coalesce(s.due_at, p.due_at) AS old_due_at,
                coalesce(s.attempts, p.attempts) AS old_attempts,
                CASE WHEN s.number IS NULL THEN p.provider_id ELSE s.provider_id END AS old_provider_id,
                CASE WHEN s.number IS NULL THEN p.outcome ELSE s.outcome END AS old_outcome
              FROM w \(Self.joiningPush(days, at: 12))
              LEFT JOIN LATERAL (
                SELECT * FROM tandem.push_step t WHERE t.day = p.day AND t.push = p.number ORDER BY t.number DESC LIMIT 1) s ON true),
            judged AS (
              SELECT *, is_open AND state = 'retry' AND old_outcome IS NOT DISTINCT FROM '\(PushSteps.receipt)' AS is_withdrawn FROM found),
            added AS (
              INSERT INTO tandem.push_step (day, push, state, due_at, attempts, provider_id, outcome, log, is_final)
              SELECT day, number, CASE WHEN NOT is_open THEN old_state WHEN is_withdrawn THEN 'cancelled' ELSE state END,
                CASE WHEN is_open THEN due_at ELSE old_due_at END, CASE WHEN is_open THEN attempts ELSE old_attempts END,
                CASE WHEN is_open THEN provider_id ELSE old_provider_id END,
                CASE WHEN is_open AND NOT is_withdrawn THEN outcome ELSE old_outcome END, log, NOT is_open OR is_withdrawn OR is_final
              FROM judged WHERE is_open OR log IS NOT NULL ORDER BY place),
            dead AS (
              INSERT INTO tandem.dead_letter (day, push, app, nid, device, failed_at, expires_at)
              SELECT day, number, app, nid, device, due_at, expires_at FROM judged WHERE is_open AND state = 'failed' AND is_notification)
            SELECT place, number, is_withdrawn FROM judged ORDER BY place
            """,
            Self.names(of: deliveries) + [
                .texts(deliveries.map(\.state.rawValue)),
                // A failed push has its time of failure as its due time, by which dead letters are listed.
                .ints(deliveries.map { $0.state == .failed ? $0.attempt?.endedAt ?? $0.dueAt : $0.dueAt }),
                .ints(deliveries.map { Int64($0.attempts) }), .texts(deliveries.map(\.providerID)), .texts(deliveries.map(\.outcome)),
                .texts(deliveries.map { $0.attempt.map(AttemptLog.line) }), .bools(deliveries.map { !PushState.open.contains($0.state) }),
                .ints(deliveries.map { $0.timing?.expiresAt }),
            ] + days)
        let (withdrawn, numbers) = try await write(rows: deliveries.count) { tx in
            let rows = try tx.query(statement.sql, statement.values)
            let withdrawn = rows.compactMap { row -> PushRecord? in
                guard row.bool("is_withdrawn") else { return nil }
                var delivery = deliveries[Int(row.int("place")) - 1]
                (delivery.state, delivery.outcome) = (.cancelled, PushSteps.receipt)
                return delivery
            }
            return (withdrawn, rows.map { $0.int("number") })
        }
        leases.withLock { $0.subtract(numbers) }
        return withdrawn
    }

    /// An unreadable row comes without its message and with the problem as its outcome; an unknown state reads as `failed`.
    package func deliveries(event: String) async throws -> [PushRecord] {
        try await read { tx in try PushReader(tx).pushes("p.event = $1", [.text(event)]).map(\.record) }
    }

    /// `DeliveryStore.deliveries`: a walk along the key.
    package func deliveries(event: String, user: String) async throws -> [PushRecord] {
        try await read { tx in try PushReader(tx).pushes("p.event = $1 AND p.user_id = $2", [.text(event), .text(user)]).map(\.record) }
    }

    /// `DeliveryStore.dueDeliveries`: a walk along the key for each event, and a look-up of the last step for each row.
    package func dueDeliveries(events: [String]) async throws -> [PushRecord] {
        if events.isEmpty { return [] }
        return try await read { tx in
            try PushReader(tx).pushes("p.event = ANY($1) AND coalesce(s.state, p.state) = 'due'", [.texts(events)]).map(\.record)
        }
    }

    /// `DeliveryStore.event`: one look-up by key.
    package func event(id: String) async throws -> EventRecord? {
        try await read { tx in try Self.event(id, tx) }
    }

    // MARK: Inside a transaction

    static func event(_ id: String, _ tx: PostgresTransaction) throws -> EventRecord? {
        try tx.query("SELECT \(EventReader.columns) FROM tandem.event e WHERE e.id = $1", [.text(id)]).first.map(EventReader.event)
    }

    /// The statement that writes events; its rows have their sequences.
    private static func writing(_ events: [EventRecord]) -> PostgresStatement? {
        if events.isEmpty { return nil }
        return PostgresStatement(
            """
            INSERT INTO tandem.event (day, id, app, channel, sequence, name, data, policy, committed_at, expires_at)
            SELECT w.day, w.id, w.app, w.channel,
              greatest(
                coalesce((SELECT max(e.sequence) FROM tandem.event e WHERE e.app = w.app AND e.channel = w.channel), 0),
                coalesce((SELECT c.sequence FROM tandem.channel c WHERE c.app = w.app AND c.name = w.channel), 0))
                + row_number() OVER (PARTITION BY w.app, w.channel ORDER BY w.place),
              w.name, w.data, w.policy, w.committed_at, w.expires_at
            FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::text[], $8::bigint[], $9::bigint[])
              WITH ORDINALITY AS w (day, id, app, channel, name, data, policy, committed_at, expires_at, place)
            RETURNING id, sequence
            """,
            [
                .ints(events.map { Int64(day($0.committedAt)) }), .texts(events.map(\.id)), .texts(events.map(\.app)),
                .texts(events.map(\.channel)), .texts(events.map(\.name)), .blobs(events.map { Array($0.data.utf8) }),
                .texts(events.map(\.policy.rawValue)), .ints(events.map(\.committedAt)), .ints(events.map(\.expiresAt)),
            ])
    }

    /// Takes a commit back whose caller was told that it failed.
    private static func remove(_ events: [EventRecord], _ answers: [AnswerRecord], _ tx: PostgresTransaction) throws {
        let ids = PostgresValue.texts(events.map(\.id))
        try tx.query("DELETE FROM tandem.push WHERE event = ANY($1)", [ids])
        try tx.query("DELETE FROM tandem.fanout WHERE event = ANY($1)", [ids])
        try tx.query("DELETE FROM tandem.event WHERE id = ANY($1)", [ids])
        for answer in answers {
            try tx.query(
                "DELETE FROM tandem.answer WHERE app = $1 AND key = $2 AND answered_at = $3",
                [.text(answer.app), .text(answer.key), .int(answer.answeredAt)])
        }
    }

    /// Takes pushes back whose caller was told that they were not written.
    static func remove(_ pushes: [PushRecord], _ tx: PostgresTransaction) throws {
        if pushes.isEmpty { return }
        try tx.query(
            """
            DELETE FROM tandem.push p USING unnest($1::text[], $2::text[], $3::text[]) AS w (event, user_id, device)
            WHERE p.event = w.event AND p.user_id = w.user_id AND p.device = w.device
            """, names(of: pushes))
    }

    private static func names(of deliveries: [PushRecord]) -> [PostgresValue] {
        [.texts(deliveries.map(\.event)), .texts(deliveries.map(\.user)), .texts(deliveries.map(DeviceColumn.text))]
    }

    /// Days of the events, as far as the deliveries tell them; empty if one does not.
    private static func days(of deliveries: [PushRecord]) -> [PostgresValue] {
        let days = Set(deliveries.map { $0.message.map { day($0.committedAt) } })
        return days.contains(nil) ? [] : [.ints(days.compactMap { $0 }.sorted().map(Int64.init))]
    }

    /// Joins the row `p` of each `w` by its key. Without the limit the server may read a whole day for a few rows. The days, if known,
    /// leave out the parts that cannot have it.
    private static func joiningPush(_ days: [PostgresValue], at place: Int) -> String {
        """
        JOIN LATERAL (
          SELECT * FROM tandem.push k WHERE k.event = w.event AND k.user_id = w.user_id AND k.device = w.device
            \(days.isEmpty ? "" : "AND k.day = ANY($\(place))") LIMIT 1) p ON true
        """
    }
}
