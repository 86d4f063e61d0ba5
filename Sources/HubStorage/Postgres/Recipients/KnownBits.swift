import HubDelivery
import Synchronization

/// The bits of recent events, kept in memory: people who come back ask for the same ones, and each receipt is a row.
///
/// Settlements are only added. Those of one event are numbered in the order of their commits: one node decides about it, and writes one
/// transaction after the other. So a read takes the rows behind the last one that is known here. An entry is read anew after a minute, in
/// case a database has lost its newest rows.
final class KnownBits: Sendable {
    private struct Entry {
        let bits: RecipientBits
        /// Number of the last settlement that the bits include.
        let through: Int64
        /// Nanoseconds of the clock that only grows, when the first row was read.
        let readAt: UInt64
    }

    private struct State {
        var young: [Int64: Entry] = [:]
        var old: [Int64: Entry] = [:]
        /// Memory of the young ones.
        var bytes = 0
    }

    /// Maximum of bytes of one generation of entries; two are kept.
    static let generationBytesMax = 16 << 20
    /// Nanoseconds that an entry counts.
    static let ageMax: UInt64 = 60_000_000_000
    private let state = Mutex(State())

    /// Columns that `read` wants of `tandem.fanout f`.
    static let columns = "f.number, f.day, f.count, f.committed_at, f.pushed"

    /// The bits of these events by their rows' numbers, as of the transaction's snapshot or newer. Times of receipts are left out.
    /// - Parameters:
    ///   - rows: with `columns`.
    ///   - now: nanoseconds of the clock that only grows.
    func read(_ rows: PostgresRows, _ tx: PostgresTransaction, now: UInt64) throws -> [Int64: RecipientBits] {
        if rows.isEmpty { return [:] }
        var entries: [Int64: Entry] = [:]
        for index in 0..<rows.count {
            let row = rows[index]
            let number = row.int("number")
            let bits = RecipientBits(
                count: Int(clamping: row.int("count")), committedAt: row.int("committed_at"), confirmed: [], pushed: row.bytes("pushed"),
                received: [])
            let known = entry(number)
            let isKnown = known.map { $0.bits.isOf(bits) && now < $0.readAt + Self.ageMax } ?? false
            entries[number] = isKnown ? known : Entry(bits: bits, through: 0, readAt: now)
        }
        let added = try tx.query(
            """
            SELECT w.fanout, s.places, s.through FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS w (day, fanout, through)
            CROSS JOIN LATERAL (
              SELECT string_agg(s.places, ''::bytea) AS places, max(s.number) AS through FROM tandem.settlement s
              WHERE s.day = w.day AND s.fanout = w.fanout AND s.number > w.through) s
            WHERE s.through IS NOT NULL
            """,
            [
                .ints(rows.map { $0.int("day") }), .ints(rows.map { $0.int("number") }),
                .ints(rows.map { entries[$0.int("number")]?.through ?? 0 }),
            ])
        for index in 0..<added.count {
            let row = added[index]
            guard let known = entries[row.int("fanout")] else { continue }
            var bits = known.bits
            if !SettlementCoding.apply(row.bytes("places"), to: &bits) { bits.isUnreadable = true }
            bits.received = nil
            entries[row.int("fanout")] = Entry(bits: bits, through: row.int("through"), readAt: known.readAt)
        }
        keep(entries)
        return entries.mapValues(\.bits)
    }

    private func entry(_ number: Int64) -> Entry? { state.withLock { $0.young[number] ?? $0.old[number] } }

    private func keep(_ entries: [Int64: Entry]) {
        state.withLock { state in
            for (number, entry) in entries {
                let known = state.young[number]
                // Another reader may have seen a later snapshot.
                if let known, (known.readAt, known.through) >= (entry.readAt, entry.through) { continue }
                state.young[number] = entry
                if known == nil { state.bytes += entry.bits.byteCount }
                if state.bytes > Self.generationBytesMax { state = State(old: state.young) }
            }
        }
    }
}

extension RecipientBits {
    /// Whether both are of the same row.
    fileprivate func isOf(_ other: Self) -> Bool { count == other.count && committedAt == other.committedAt }

    /// Memory of an entry, about.
    fileprivate var byteCount: Int { confirmed.bytes.count + pushed.bytes.count + 200 }
}
