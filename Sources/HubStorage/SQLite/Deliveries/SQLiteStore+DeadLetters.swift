import GRDB
import HubCore
package import HubDelivery

extension SQLiteStore {
    /// `DeadLetterStore.deadLetters`: a walk along the index of failed pushes.
    package func deadLetters(
        app: String, reason: String?, after place: DeadLetter.Place?, limit: Int
    ) async throws -> [DeadLetter] {
        try await read { db in
            var messages = MessageReader(db)
            return try Row.fetchAll(
                db.cachedStatement(sql: Self.deadLettersSQL),
                arguments: [app, place?.failedAt ?? .min, place?.row ?? 0, reason, reason, reason, limit]
            ).map { try Self.deadLetter(row: $0, &messages) }
        }
    }

    /// `DeadLetterStore.deadLetter`: one look-up by index.
    package func deadLetter(app: String, nid: String, device: String) async throws -> DeadLetter? {
        try await read { db in
            var messages = MessageReader(db)
            return try Row.fetchOne(db.cachedStatement(sql: Self.deadLetterSQL), arguments: [nid, device, app])
                .map { try Self.deadLetter(row: $0, &messages) }
        }
    }

    /// `DeadLetterStore.replayDeadLetters`: one transaction, at most `DeadLetter.stepMax` rows.
    package func replayDeadLetters(
        _ selection: DeadLetterSelection, app: String, now: Int64, ttl: Int64?
    ) async throws -> DeadLetterReplay {
        try await write(rows: DeadLetter.stepMax) { db in
            var replay = DeadLetterReplay(due: [], expired: [])
            // Expired dead letters would fill the step in front of the living ones.
            let living = ttl == nil ? now : nil
            var messages = MessageReader(db)
            for row in try Self.selected(selection, app: app, livingAt: living, db) {
                var (delivery, problem) = try Self.delivery(row: row, &messages)
                guard problem == nil, let message = delivery.message else { continue }
                guard ttl != nil || message.expiresAt > now else {
                    replay.expired.append(delivery)
                    continue
                }
                let expiresAt = ttl.map { now + $0 }
                if let expiresAt { delivery.message?.expiresAt = expiresAt }
                delivery.state = .due
                delivery.dueAt = now
                delivery.attempts = 0
                (delivery.outcome, delivery.providerID) = (nil, nil)
                try db.cachedStatement(
                    sql: """
                        UPDATE delivery SET state = 'due', due_at = ?1, attempts = 0, outcome = NULL, provider_id = NULL, attempts_log = NULL,
                          message = CASE WHEN ?2 IS NULL THEN message ELSE json_set(message, '$.expires_at', ?2) END
                        WHERE rowid = ?3
                        """
                ).execute(arguments: [now, expiresAt, row["row"] as Int64])
                assert(db.changesCount == 1, "a dead letter was made due in \(db.changesCount) rows")
                replay.due.append(delivery)
            }
            return replay
        }
    }

    /// `DeadLetterStore.dismissDeadLetters`: one transaction, at most `DeadLetter.stepMax` rows.
    package func dismissDeadLetters(_ selection: DeadLetterSelection, app: String) async throws -> Int {
        try await write(rows: DeadLetter.stepMax) { db in
            let rows = try Self.selected(selection, app: app, livingAt: nil, db).map { $0["row"] as Int64 }
            for row in rows {
                try db.cachedStatement(sql: Self.dismissSQL).execute(arguments: [row])
                assert(db.changesCount == 1, "dead letter \(row) was dismissed in \(db.changesCount) rows")
            }
            return rows.count
        }
    }

    /// `DeadLetterStore.dismissDeadLetter`: one row, by index.
    package func dismissDeadLetter(app: String, nid: String, device: String) async throws -> Bool {
        try await write { db in
            guard let row = try Row.fetchOne(db.cachedStatement(sql: Self.deadLetterSQL), arguments: [nid, device, app]) else {
                return false
            }
            try db.cachedStatement(sql: Self.dismissSQL).execute(arguments: [row["row"] as Int64])
            assert(db.changesCount == 1, "a dead letter was dismissed in \(db.changesCount) rows")
            return true
        }
    }

    /// - Parameter moment: leaves out dead letters expired by then, unless notifications are named.
    private static func selected(
        _ selection: DeadLetterSelection, app: String, livingAt moment: Int64?, _ db: Database
    ) throws -> [Row] {
        switch selection {
        case .nids(let nids):
            let statement = try db.cachedStatement(sql: deadLettersOfNotificationSQL)
            return Array(try nids.flatMap { try Row.fetchAll(statement, arguments: [$0, app]) }.prefix(DeadLetter.stepMax))
        case .failed(let reason, let before):
            return try Row.fetchAll(
                db.cachedStatement(sql: selectedDeadLettersSQL),
                arguments: [app, before ?? .max, reason, reason, reason, moment, moment, DeadLetter.stepMax])
        }
    }

    private static func deadLetter(row: Row, _ messages: inout MessageReader) throws -> DeadLetter {
        let delivery = try delivery(row: row, &messages).delivery
        return DeadLetter(
            delivery: delivery, provider: delivery.address?.provider ?? (row["provider"] as String?).flatMap(PushProvider.init(rawValue:)),
            attempts: AttemptLog.decode(row["attempts_log"] ?? "").attempts,
            place: DeadLetter.Place(failedAt: delivery.dueAt, row: row["row"]))
    }
}

extension SQLiteStore {
    /// Must match the partial indexes literally, or SQLite would not use them. A failed clear is no dead letter: nobody loses a
    /// notification.
    private static let isDead = "delivery.state = 'failed' AND delivery.message IS NOT NULL AND NOT \(DeviceColumn.isClear)"
    private static let hasReason =
        "(? IS NULL OR delivery.outcome = ? OR substr(delivery.outcome, 1, instr(delivery.outcome, ':') - 1) = ?)"
    /// The row's own member overrides the shared text. NULL if it cannot be read.
    private static let expiresAt = """
        COALESCE(
          CASE WHEN json_valid(delivery.message) THEN json_extract(delivery.message, '$.expires_at') END,
          (SELECT CASE WHEN json_valid(text) THEN json_extract(text, '$.expires_at') END
            FROM message WHERE number = delivery.message_number))
        """
    private static let withDevice = """
        delivery.rowid AS row, device.provider AS provider, event.sequence
        FROM delivery JOIN event ON event.id = delivery.event
        LEFT JOIN device ON device.app = delivery.app AND device.user = delivery.user AND device.id = delivery.device
        """

    static let deadLettersSQL = """
        SELECT delivery.event, delivery.user, delivery.device, delivery.nid, delivery.app, delivery.state, delivery.reason,
          delivery.due_at, delivery.attempts, NULL AS message, delivery.address, delivery.provider_id, delivery.outcome,
          NULL AS attempts_log, \(withDevice)
        WHERE delivery.app = ? AND \(isDead) AND (delivery.due_at, delivery.rowid) > (?, ?) AND \(hasReason)
        ORDER BY delivery.due_at, delivery.rowid LIMIT ?
        """
    static let deadLetterSQL = """
        SELECT delivery.*, \(withDevice) WHERE delivery.nid = ? AND delivery.device = ? AND \(isDead) AND delivery.app = ?
        """
    static let deadLettersOfNotificationSQL = """
        SELECT delivery.*, delivery.rowid AS row, event.sequence FROM delivery JOIN event ON event.id = delivery.event
        WHERE delivery.nid = ? AND \(isDead) AND delivery.app = ? ORDER BY delivery.device
        """
    static let selectedDeadLettersSQL = """
        SELECT delivery.*, delivery.rowid AS row, event.sequence FROM delivery JOIN event ON event.id = delivery.event
        WHERE delivery.app = ? AND \(isDead) AND delivery.due_at < ? AND \(hasReason)
          AND (? IS NULL OR \(expiresAt) > ?)
        ORDER BY delivery.due_at, delivery.rowid LIMIT ?
        """
    /// Keeps the reason readable in the trail.
    private static let dismissSQL = "UPDATE delivery SET state = 'cancelled', outcome = 'dismissed: ' || outcome WHERE rowid = ?"

    /// For tests: SQLite's query plans for dead letters.
    package func deadLetterPlans() async throws -> [String: [String]] {
        try await plans([
            "list": Self.deadLettersSQL, "one": Self.deadLetterSQL, "notification": Self.deadLettersOfNotificationSQL,
            "selected": Self.selectedDeadLettersSQL,
        ])
    }

    func plans(_ queries: [String: String]) async throws -> [String: [String]] {
        try await read { db in
            try queries.mapValues { sql in
                let statement = try db.makeStatement(sql: "EXPLAIN QUERY PLAN " + sql)
                // The plan does not depend on the values.
                statement.setUncheckedArguments(StatementArguments())
                return try Row.fetchAll(statement).map { $0["detail"] }
            }
        }
    }
}
