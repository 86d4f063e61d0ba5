internal import HubCore
import HubDelivery

extension PostgresStore {
    /// Days that one call looks at, and drops at most one of.
    private static let daysMax = 64

    /// `DeliveryStore.prune`: drops the oldest day that lies before the cutoff as a whole and has nothing open. Scheduled publishes that
    /// ended are deleted. Pushes that have ended are marked, so that nobody looks at them for open ones.
    /// - Returns: `limit` after a day was dropped, because there may be more.
    package func prune(before cutoff: Int64, limit: Int) async throws -> Int {
        guard limit > 0 else { return 0 }
        let today = Self.day(cutoff)
        try await maintain { [openPushes, now = time.monotonicNanoseconds] tx in try openPushes.note(tx, now: now) }
        let dropped = try await maintain { tx -> Int32? in
            // Readers of old snapshots hold their locks for long: dropping waits for them in vain, and the next call tries again.
            tx.queue("SET LOCAL lock_timeout = '200ms'")
            let days = try tx.query(
                "SELECT day FROM tandem.day WHERE NOT is_ended ORDER BY day LIMIT $1", [.int(Self.daysMax)]
            ).map { $0.int("day") }
            // The newest days are in use.
            for day in days.dropLast(2) where try Self.hasEnded(day, tx) {
                try tx.query("UPDATE tandem.day SET is_ended = true WHERE day = $1", [.int(day)])
            }
            let oldest = try tx.query("SELECT day FROM tandem.day WHERE day < $1 ORDER BY day", [.int(Int64(today))])
            for index in 0..<oldest.count {
                let day = oldest[index].int("day")
                guard try Self.hasEnded(day, tx) else { continue }
                try tx.query("SELECT tandem.drop_day($1::bigint::integer)", [.int(day)])
                return Int32(clamping: day)
            }
            return nil
        }
        if let dropped {
            forget(day: dropped)
            lists.forget(day: dropped)
        }
        let scheduled = try await write { tx in try Self.pruneScheduled(before: cutoff, limit: limit, tx) }
        return dropped == nil ? scheduled : limit
    }

    /// Whether the day has no open push, no event whose receipts are awaited, and no webhook that waits.
    private static func hasEnded(_ day: Int64, _ tx: PostgresTransaction) throws -> Bool {
        let isOpen = try tx.query(
            """
            SELECT EXISTS (SELECT \(OpenPushes.clause(days: "d.day = $1")))
              OR EXISTS (
                SELECT FROM tandem.fanout f WHERE f.day = $1 AND f.is_open
                  AND NOT EXISTS (SELECT FROM tandem.settlement s WHERE s.day = f.day AND s.fanout = f.number AND s.is_closed))
              OR EXISTS (
                SELECT FROM tandem.webhook h WHERE h.day = $1
                  AND NOT EXISTS (SELECT FROM tandem.webhook_end n WHERE n.number = h.number)) AS is_open
            """, [.int(day)]
        ).first?.bool("is_open")
        return isOpen == false
    }
}
