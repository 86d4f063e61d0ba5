import Foundation
import GRDB
import HubDelivery
import Synchronization

/// Leased deliveries: handed out for sending, not answered yet.
///
/// One row of the table `lease` stands for all deliveries leased together, and this object holds them in memory. The deliveries' own rows
/// change only with their outcomes, because writing each row twice took as long as sending. After a crash, `takeUp` writes the remaining
/// leases into the rows of their deliveries.
///
/// A read parallel to the writer must copy `current` *before* it begins: a lease is removed only after its outcome is written.
final class PushLeases: Sendable {
    struct Lease: Sendable, Equatable {
        /// Number of the row in the table `lease`.
        var batch: Int64
        var attempts: Int
        /// Milliseconds since 1970.
        var dueAt: Int64
    }

    private struct State {
        /// Key: `delivery.rowid`.
        var leases: [Int64: Lease] = [:]
        /// Unanswered deliveries per batch.
        var left: [Int64: Int] = [:]
        /// Number of the newest batch, counted here. SQLite would give an undone batch's number to the next batch, while the undone
        /// one's deliveries are still to be forgotten.
        var lastBatch: Int64 = 0

        /// Whether each batch counts its leases. Adds up few leases only.
        var isConsistent: Bool {
            guard left.values.allSatisfy({ $0 > 0 }), left.values.reduce(0, +) == leases.count else { return false }
            return leases.count > 64 || Dictionary(grouping: leases.values, by: \.batch).mapValues(\.count) == left
        }

        /// - Returns: the lease, and its batch's number if this was the batch's last one; nil if nothing was leased.
        mutating func end(_ row: Int64) -> (lease: Lease, lastOf: Int64?)? {
            guard let lease = leases.removeValue(forKey: row) else { return nil }
            assert(left[lease.batch] != nil, "row \(row) is leased by batch \(lease.batch), which is over")
            let count = (left[lease.batch] ?? 1) - 1
            left[lease.batch] = count > 0 ? count : nil
            return (lease, count > 0 ? nil : lease.batch)
        }
    }

    private let state = Mutex(State())

    /// Key: `delivery.rowid`.
    var current: [Int64: Lease] { state.withLock { $0.leases } }

    /// Row of `lease` that `SQLiteStore.probe` writes. If a crash leaves it behind, it names no delivery.
    static let probe: Int64 = -1

    // MARK: Inside the writer's transaction

    /// - Parameter deliveries: with their row numbers.
    func begin(_ deliveries: [PushRecord], _ db: Database) throws {
        let entries = deliveries.compactMap { delivery in
            delivery.row.map {
                LeaseCoding.Entry(
                    row: $0, dueAt: delivery.dueAt, attempts: Int32(clamping: delivery.attempts),
                    check: LeaseCoding.check(nid: delivery.nid))
            }
        }
        assert(entries.count == deliveries.count, "\(deliveries.count - entries.count) deliveries are leased without their rows")
        assert(Set(entries.map(\.row)).count == entries.count, "a delivery is leased twice in one batch")
        let batch = state.withLock { state in
            state.lastBatch += 1
            return state.lastBatch
        }
        try db.cachedStatement(sql: "INSERT INTO lease (number, deliveries) VALUES (?, ?)")
            .execute(arguments: [batch, Data(LeaseCoding.encode(entries))])
        let ended = state.withLock { state in
            // A delivery that was leased already moves to this batch.
            let ended = entries.compactMap { state.end($0.row)?.lastOf }
            for entry in entries { state.leases[entry.row] = Lease(batch: batch, attempts: Int(entry.attempts), dueAt: entry.dueAt) }
            assert(state.left[batch] == nil, "batch \(batch) begins while \(state.left[batch] ?? 0) of its deliveries are leased")
            state.left[batch] = entries.count
            assert(state.isConsistent, "\(state.leases.count) deliveries are leased in \(state.left.count) batches")
            return ended
        }
        try Self.delete(ended, db)
    }

    /// - Returns: the ended leases, for `restore`.
    func end(_ rows: [Int64], _ db: Database) throws -> [Int64: Lease] {
        let (ended, batches) = state.withLock { state in
            var ended: [Int64: Lease] = [:]
            var batches: [Int64] = []
            for row in rows {
                guard let found = state.end(row) else { continue }
                ended[row] = found.lease
                if let batch = found.lastOf { batches.append(batch) }
            }
            assert(state.isConsistent, "\(state.leases.count) deliveries are leased in \(state.left.count) batches")
            return (ended, batches)
        }
        try Self.delete(batches, db)
        return ended
    }

    private static func delete(_ batches: [Int64], _ db: Database) throws {
        for batch in batches { try db.cachedStatement(sql: "DELETE FROM lease WHERE number = ?").execute(arguments: [batch]) }
    }

    // MARK: Where a transaction has failed

    /// Forgets leases whose insertion failed.
    func forget(_ rows: [Int64]) {
        state.withLock { state in
            for row in rows { _ = state.end(row) }
        }
    }

    /// Restores leases whose removal failed.
    func restore(_ leases: [Int64: Lease]) {
        state.withLock { state in
            for (row, lease) in leases where state.leases[row] == nil {
                state.leases[row] = lease
                state.left[lease.batch, default: 0] += 1
            }
            assert(state.isConsistent, "\(state.leases.count) deliveries are leased in \(state.left.count) batches")
        }
    }

    // MARK: At the start

    /// Writes the leases of an earlier process into their deliveries' rows. A delivery confirmed by a receipt is cancelled instead.
    static func takeUp(_ db: Database) throws {
        let batches = try Row.fetchAll(db, sql: "SELECT number, deliveries FROM lease")
        if batches.isEmpty { return }
        for entry in batches.flatMap({ LeaseCoding.decode([UInt8]($0["deliveries"] as Data)) }) {
            let nid = try String.fetchOne(db.cachedStatement(sql: "SELECT nid FROM delivery WHERE rowid = ?"), arguments: [entry.row])
            guard let nid, LeaseCoding.check(nid: nid) == entry.check else { continue }
            try db.cachedStatement(
                sql: """
                    UPDATE delivery SET state = CASE WHEN outcome = '\(PushUpdate.receipt)' THEN 'cancelled' ELSE 'leased' END,
                      due_at = ?, attempts = ?
                    WHERE rowid = ? AND \(SQLiteStore.isOpen)
                    """
            ).execute(arguments: [entry.dueAt, entry.attempts, entry.row])
        }
        try db.execute(sql: "DELETE FROM lease")
    }
}

extension PushRecord {
    /// Overlays the leases on a row that was read. If the row has the attempt already, its outcome was written after `leases` was copied.
    mutating func apply(_ leases: [Int64: PushLeases.Lease]) {
        guard let row, let lease = leases[row], attempts < lease.attempts, PushState.open.contains(state) else { return }
        (state, attempts, dueAt) = (.leased, lease.attempts, lease.dueAt)
    }
}
