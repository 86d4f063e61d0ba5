import HubCore
package import HubDelivery

extension PostgresStore {
    /// `DeadLetterStore.deadLetters`: a walk along the index of failed pushes.
    package func deadLetters(
        app: String, reason: String?, after place: DeadLetter.Place?, limit: Int
    ) async throws -> [DeadLetter] {
        try await read { tx in
            try PushReader(tx, withMessages: false).pushes(
                "d.app = $1 AND (d.failed_at, d.push) > ($2, $3) AND \(Self.isDead) AND \(Self.hasReason("$4"))",
                [.text(app), .int(place?.failedAt ?? .min), .int(place?.row ?? 0), .text(reason), .int(limit)],
                tail: "ORDER BY d.failed_at, d.push LIMIT $5", from: Self.joined, provider: "v.provider"
            ).map { Self.letter($0, withAttempts: false) }
        }
    }

    /// `DeadLetterStore.deadLetter`: one look-up by index.
    package func deadLetter(app: String, nid: String, device: String) async throws -> DeadLetter? {
        try await read { tx in try Self.letter(app: app, nid: nid, device: device, tx).map { Self.letter($0, withAttempts: true) } }
    }

    /// `DeadLetterStore.replayDeadLetters`: one transaction, at most `DeadLetter.stepMax` pushes.
    package func replayDeadLetters(
        _ selection: DeadLetterSelection, app: String, now: Int64, ttl: Int64?
    ) async throws -> DeadLetterReplay {
        try await write(rows: DeadLetter.stepMax) { tx in
            var replay = DeadLetterReplay(due: [], expired: [])
            var steps = PushSteps()
            // Expired dead letters would fill the step in front of the living ones.
            for var push in try Self.selected(selection, app: app, livingAt: ttl == nil ? now : nil, tx) {
                guard push.problem == nil, let message = push.record.message else { continue }
                guard ttl != nil || message.expiresAt > now else {
                    replay.expired.append(push.record)
                    continue
                }
                let expiresAt = ttl.map { now + $0 }
                if let expiresAt { push.record.message?.expiresAt = expiresAt }
                push.record.state = .due
                push.record.dueAt = now
                push.record.attempts = 0
                (push.record.outcome, push.record.providerID) = (nil, nil)
                steps.add(push, isFresh: true, expiresAt: expiresAt)
                replay.due.append(push.record)
            }
            if let statement = steps.statement { try tx.query(statement.sql, statement.values) }
            return replay
        }
    }

    /// `DeadLetterStore.dismissDeadLetters`: one transaction, at most `DeadLetter.stepMax` pushes.
    package func dismissDeadLetters(_ selection: DeadLetterSelection, app: String) async throws -> Int {
        try await write(rows: DeadLetter.stepMax) { tx in try Self.dismiss(try Self.selected(selection, app: app, livingAt: nil, tx), tx) }
    }

    /// `DeadLetterStore.dismissDeadLetter`: one push, by index.
    package func dismissDeadLetter(app: String, nid: String, device: String) async throws -> Bool {
        try await write { tx in
            guard let push = try Self.letter(app: app, nid: nid, device: device, tx) else { return false }
            return try Self.dismiss([push], tx) == 1
        }
    }

    // MARK: Inside a transaction

    /// A push that failed again after a replay has an older row in `dead_letter`, which counts no more.
    private static let isDead = "s.state = 'failed' AND s.due_at = d.failed_at"
    private static let joined = """
        JOIN tandem.dead_letter d ON d.day = p.day AND d.push = p.number
        LEFT JOIN tandem.device v ON v.app = p.app AND v.user_id = p.user_id AND v.id = p.device
        """

    private static func hasReason(_ value: String) -> String {
        "(\(value)::text IS NULL OR s.outcome = \(value) OR position(':' IN s.outcome) > 0 AND split_part(s.outcome, ':', 1) = \(value))"
    }

    private static func letter(app: String, nid: String, device: String, _ tx: PostgresTransaction) throws -> StoredPush? {
        try PushReader(tx).pushes(
            "d.nid = $1 AND d.device = $2 AND d.app = $3 AND \(isDead)", [.text(nid), .text(device), .text(app)], tail: "LIMIT 1",
            from: joined, provider: "v.provider"
        ).first
    }

    /// - Parameter moment: leaves out dead letters expired by then, unless notifications are named.
    private static func selected(
        _ selection: DeadLetterSelection, app: String, livingAt moment: Int64?, _ tx: PostgresTransaction
    ) throws -> [StoredPush] {
        switch selection {
        case .nids(let nids):
            return try PushReader(tx).pushes(
                "d.nid = ANY($1) AND d.app = $2 AND \(isDead)", [.texts(nids), .text(app), .int(DeadLetter.stepMax)],
                tail: "ORDER BY array_position($1::text[], d.nid::text), d.device LIMIT $3", from: joined)
        case .failed(let reason, let before):
            return try PushReader(tx).pushes(
                "d.app = $1 AND d.failed_at < $2 AND \(isDead) AND \(hasReason("$3")) AND ($4::bigint IS NULL OR d.expires_at > $4)",
                [.text(app), .int(before ?? .max), .text(reason), .int(moment), .int(DeadLetter.stepMax)],
                tail: "ORDER BY d.failed_at, d.push LIMIT $5", from: joined)
        }
    }

    /// Keeps the reason readable in the trail.
    private static func dismiss(_ pushes: [StoredPush], _ tx: PostgresTransaction) throws -> Int {
        var steps = PushSteps()
        for var push in pushes {
            push.record.state = .cancelled
            push.record.outcome = "dismissed: " + (push.record.outcome ?? "")
            steps.add(push)
        }
        if let statement = steps.statement { try tx.query(statement.sql, statement.values) }
        return pushes.count
    }

    private static func letter(_ push: StoredPush, withAttempts: Bool) -> DeadLetter {
        DeadLetter(
            delivery: push.record, provider: push.record.address?.provider ?? push.provider,
            attempts: withAttempts ? AttemptLog.decode(push.log).attempts : [],
            place: DeadLetter.Place(failedAt: push.record.dueAt, row: push.number))
    }
}
