import HubDelivery
import Synchronization

/// Writes recipient lists: each once for a day. A list that is known to be committed is not sent again.
final class PostgresLists: Sendable {
    struct Written {
        let day: Int32
        let depth: Int
        let snapshot: RecipientSnapshot
    }

    /// A list to write, with what is known when it has been committed.
    struct Plan: Sendable {
        let statements: [PostgresStatement]
        let written: Written
    }

    /// Lists that are remembered.
    static let recentMax = 64
    /// Maximum of base rows per list.
    static let depthMax = 32
    private let recent = Mutex<[Written]>([])

    /// The statements that write the list, unless it is known to be there. A list that is there already stays as it is.
    func plan(_ snapshot: RecipientSnapshot, day: Int32) -> Plan? {
        let (isKnown, base) = recent.withLock { recent in
            let ofDay = recent.filter { $0.day == day }
            return (
                ofDay.contains { $0.snapshot.key == snapshot.key },
                ofDay.last { $0.depth < Self.depthMax && RecipientColumns.isLarge(snapshot) && snapshot.continues($0.snapshot) }
            )
        }
        if isKnown { return nil }
        let users = Array(snapshot.encoded.dropFirst(base?.snapshot.encoded.count ?? 0))
        let depth = base.map { $0.depth + 1 } ?? 0
        var statements = [
            PostgresStatement(
                """
                INSERT INTO tandem.snapshot (day, key, count, users, base, depth)
                VALUES ($1, $2, $3, $4, (SELECT number FROM tandem.snapshot WHERE key = $5 AND day = $1), $6)
                ON CONFLICT (key, day) DO NOTHING
                """,
                [
                    .int(Int64(day)), .bytes(snapshot.key), .int(snapshot.users.count), .bytes(users), .bytes(base?.snapshot.key),
                    .int(depth),
                ])
        ]
        if !RecipientColumns.isLarge(snapshot) {
            statements.append(
                PostgresStatement(
                    """
                    INSERT INTO tandem.snapshot_user (day, user_id, snapshot)
                    SELECT $1::bigint, u, s.number FROM unnest($2::text[]) u, tandem.snapshot s WHERE s.key = $3 AND s.day = $1
                    ON CONFLICT (user_id, snapshot, day) DO NOTHING
                    """, [.int(Int64(day)), .texts(snapshot.users), .bytes(snapshot.key)]))
        }
        return Plan(statements: statements, written: Written(day: day, depth: depth, snapshot: snapshot))
    }

    /// The lists are committed.
    func committed(_ plans: [Plan]) {
        recent.withLock { recent in
            for plan in plans {
                recent.removeAll { $0.day == plan.written.day && $0.snapshot.key == plan.written.snapshot.key }
                recent.append(plan.written)
            }
            if recent.count > Self.recentMax { recent.removeFirst(recent.count - Self.recentMax) }
        }
    }

    /// A list that was dropped with its day is not known any more.
    func forget(day: Int32) { recent.withLock { $0.removeAll { $0.day == day } } }

    /// Nil if the list cannot be read or does not match its key.
    static func read(_ number: Int64, _ tx: PostgresTransaction) throws -> RecipientSnapshot? {
        let rows = try tx.query(
            """
            WITH RECURSIVE part AS (
              SELECT number, key, users, base, 0 AS place FROM tandem.snapshot WHERE number = $1
              UNION ALL
              SELECT s.number, s.key, s.users, s.base, part.place + 1 FROM part JOIN tandem.snapshot s ON s.number = part.base
              WHERE part.place < $2)
            SELECT key, users, base FROM part ORDER BY place
            """, [.int(number), .int(depthMax)])
        guard let key = rows.first?.bytes("key"), rows[rows.count - 1].isNull("base") else { return nil }
        return RecipientSnapshot(encoded: rows.map { $0.bytes("users") }.reversed().flatMap { $0 }, key: key)
    }
}

extension RecipientSnapshot {
    /// Whether this list is the other one with people added at the end.
    fileprivate func continues(_ other: RecipientSnapshot) -> Bool {
        other.users.count < users.count && encoded.starts(with: other.encoded)
    }
}
