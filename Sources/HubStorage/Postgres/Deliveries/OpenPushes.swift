internal import HubCore
internal import Synchronization

/// Finds open pushes without a look at those that ended long ago.
///
/// `tandem.day.ended` has ranges of numbers whose pushes have ended. A replayed push may be open in such a range: the index of fresh steps
/// has it.
final class OpenPushes: Sendable {
    /// Numbers that are marked together. One open push keeps its block from being marked.
    static let blockSize: Int64 = 1_024
    /// Unmarked numbers of a day that one call looks at: a database of an earlier build has none that are marked.
    private static let stepMax: Int64 = 262_144
    /// A push's number that was given this long ago, in nanoseconds, is of a transaction that has a number itself.
    private static let settledAfter: UInt64 = 10_000_000_000

    /// The numbers given by a moment, and the transactions that may have taken them.
    private struct Mark {
        /// Last number given.
        let number: Int64
        /// Number of the next transaction.
        let transaction: Int64
        /// Nanoseconds of the clock that only grows.
        let at: UInt64
    }

    private let mark = Mutex<Mark?>(nil)

    /// FROM and WHERE that yield the open pushes `p` with their last steps `s`. Without the offset the server reads the whole day.
    /// - Parameter condition: over the days `d`.
    static func clause(days condition: String) -> String {
        """
        FROM (
          SELECT n.* FROM tandem.day d CROSS JOIN LATERAL unnest(int8multirange(int8range(0, NULL)) - d.ended) r
          CROSS JOIN LATERAL (
            SELECT * FROM tandem.push o
            WHERE o.day = d.day AND o.number >= lower(r) AND o.number < coalesce(upper(r), 9223372036854775807) OFFSET 0) n
          WHERE \(condition)
          UNION ALL
          SELECT n.* FROM (SELECT DISTINCT day, push FROM tandem.push_step WHERE is_fresh) f
          JOIN tandem.day d ON d.day = f.day AND f.push <@ d.ended
          JOIN tandem.push n ON n.day = f.day AND n.number = f.push
          WHERE \(condition)) p
        LEFT JOIN LATERAL (
          SELECT * FROM tandem.push_step t WHERE t.day = p.day AND t.push = p.number ORDER BY t.number DESC LIMIT 1) s ON true
        WHERE \(PushReader.isOpen)
        """
    }

    /// Marks blocks whose pushes have ended since. Numbers given after the call before are left for the next one, because their
    /// transactions may still be under way.
    /// - Parameter now: nanoseconds of the clock that only grows.
    func note(_ tx: PostgresTransaction, now: UInt64) throws {
        let row = try tx.query(
            """
            SELECT (SELECT last_value FROM tandem.push_number) AS number, pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS oldest,
              pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next, pg_try_advisory_xact_lock(hashtext('tandem.ended')) AS is_alone
            """
        ).first
        // Another node may do the same at this moment.
        guard let row, row.bool("is_alone") else { return }
        let (oldest, next) = (row.int("oldest"), Mark(number: row.int("number"), transaction: row.int("next"), at: now))
        let settled = mark.withLock { mark -> Int64? in
            guard let known = mark else {
                mark = next
                return nil
            }
            guard now >= known.at + Self.settledAfter, oldest >= known.transaction else { return nil }
            mark = next
            return known.number
        }
        guard let settled else { return }
        for day in try tx.query("SELECT day FROM tandem.day WHERE NOT is_ended ORDER BY day").map({ $0.int("day") }) {
            try Self.note(day, below: settled, tx)
        }
    }

    private static func note(_ day: Int64, below bound: Int64, _ tx: PostgresTransaction) throws {
        let more = try tx.query(
            """
            WITH looked AS MATERIALIZED (
              SELECT int8multirange(int8range(f.first, greatest(f.first, least(
                $2, greatest(f.first, coalesce(upper(d.ended), 0)) + \(stepMax))))) - d.ended AS ranges
              FROM tandem.day d CROSS JOIN (SELECT min(number) AS first FROM tandem.push WHERE day = $1) f
              WHERE d.day = $1 AND f.first IS NOT NULL),
            open AS (
              SELECT DISTINCT p.number / \(blockSize) AS block
              FROM looked CROSS JOIN LATERAL unnest(looked.ranges) r
              CROSS JOIN LATERAL (
                SELECT * FROM tandem.push o WHERE o.day = $1 AND o.number >= lower(r) AND o.number < upper(r) OFFSET 0) p
              LEFT JOIN LATERAL (
                SELECT * FROM tandem.push_step t WHERE t.day = $1 AND t.push = p.number ORDER BY t.number DESC LIMIT 1) s ON true
              WHERE \(PushReader.isOpen))
            SELECT (looked.ranges - coalesce(
              (SELECT range_agg(int8range(block * \(blockSize), (block + 1) * \(blockSize))) FROM open), '{}'))::text AS ranges
            FROM looked
            """, [.int(day), .int(bound)]
        ).first?.text("ranges")
        guard let more, more != "{}" else { return }
        try tx.query("UPDATE tandem.day SET ended = ended + $2::text::int8multirange WHERE day = $1", [.int(day), .text(more)])
    }
}
