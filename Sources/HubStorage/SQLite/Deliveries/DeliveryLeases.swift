import Foundation
import GRDB
import HubDelivery
import Synchronization

/// Deliveries that are leased: being sent, and not answered.
///
/// A lease is one row of the table `lease` for all that were leased together, and a memory of them here; the rows of the deliveries stay
/// as they are until their outcomes are written. Writing each of them twice took as long as sending it. After a crash the rows that are
/// left say what had been leased, and `takeUp` writes it where it belongs.
///
/// What is read beside the writer has to know what is leased *before* it begins to read: a lease goes only after the outcome is there.
final class DeliveryLeases: Sendable {
    struct Lease: Sendable, Equatable {
        /// Of the table `lease`.
        var batch: Int64
        var attempts: Int
        /// Milliseconds since 1970.
        var dueAt: Int64
    }

    private struct State {
        /// By `delivery.rowid`.
        var leases: [Int64: Lease] = [:]
        /// How many of a batch are not answered.
        var left: [Int64: Int] = [:]

        /// - Returns: the batch, if this was its last one.
        mutating func end(_ row: Int64) -> (lease: Lease, lastOf: Int64?)? {
            guard let lease = leases.removeValue(forKey: row) else { return nil }
            let count = (left[lease.batch] ?? 1) - 1
            left[lease.batch] = count > 0 ? count : nil
            return (lease, count > 0 ? nil : lease.batch)
        }
    }

    private let state = Mutex(State())

    /// By `delivery.rowid`.
    var current: [Int64: Lease] { state.withLock { $0.leases } }

    /// The row of `SQLiteStore.probe`, beside those of leases. One that a crash left names no delivery.
    static let probe: Int64 = -1

    // MARK: Inside the writer's transaction

    /// - Parameter deliveries: with their rows.
    func begin(_ deliveries: [DeliveryRecord], _ db: Database) throws {
        let entries = deliveries.compactMap { delivery in
            delivery.row.map {
                LeaseCoding.Entry(row: $0, dueAt: delivery.dueAt, attempts: Int32(clamping: delivery.attempts), check: LeaseCoding.check(nid: delivery.nid))
            }
        }
        try db.cachedStatement(sql: "INSERT INTO lease (deliveries) VALUES (?)").execute(arguments: [Data(LeaseCoding.encode(entries))])
        let batch = db.lastInsertedRowID
        let ended = state.withLock { state in
            // One that was leased already goes over to this batch.
            let ended = entries.compactMap { state.end($0.row)?.lastOf }
            for entry in entries { state.leases[entry.row] = Lease(batch: batch, attempts: Int(entry.attempts), dueAt: entry.dueAt) }
            state.left[batch] = entries.count
            return ended
        }
        try Self.delete(ended, db)
    }

    /// - Returns: what was leased, for `restore`.
    func end(_ rows: [Int64], _ db: Database) throws -> [Int64: Lease] {
        let (ended, batches) = state.withLock { state in
            var ended: [Int64: Lease] = [:]
            var batches: [Int64] = []
            for row in rows {
                guard let found = state.end(row) else { continue }
                ended[row] = found.lease
                if let batch = found.lastOf { batches.append(batch) }
            }
            return (ended, batches)
        }
        try Self.delete(batches, db)
        return ended
    }

    private static func delete(_ batches: [Int64], _ db: Database) throws {
        for batch in batches { try db.cachedStatement(sql: "DELETE FROM lease WHERE number = ?").execute(arguments: [batch]) }
    }

    // MARK: Where a transaction has failed

    /// Forgets leases that were not written.
    func forget(_ rows: [Int64]) {
        state.withLock { state in
            for row in rows { _ = state.end(row) }
        }
    }

    /// Remembers leases again whose end was not written.
    func restore(_ leases: [Int64: Lease]) {
        state.withLock { state in
            for (row, lease) in leases where state.leases[row] == nil {
                state.leases[row] = lease
                state.left[lease.batch, default: 0] += 1
            }
        }
    }

    // MARK: At the start

    /// Writes down what an earlier process had leased when it ended. What a receipt has come to since is not repeated.
    static func takeUp(_ db: Database) throws {
        let batches = try Row.fetchAll(db, sql: "SELECT number, deliveries FROM lease")
        if batches.isEmpty { return }
        for entry in batches.flatMap({ LeaseCoding.decode([UInt8]($0["deliveries"] as Data)) }) {
            let nid = try String.fetchOne(db.cachedStatement(sql: "SELECT nid FROM delivery WHERE rowid = ?"), arguments: [entry.row])
            guard let nid, LeaseCoding.check(nid: nid) == entry.check else { continue }
            try db.cachedStatement(
                sql: """
                    UPDATE delivery SET state = CASE WHEN outcome = '\(DeliveryUpdate.receipt)' THEN 'cancelled' ELSE 'leased' END,
                      due_at = ?, attempts = ?
                    WHERE rowid = ? AND \(SQLiteStore.isOpen)
                    """
            ).execute(arguments: [entry.dueAt, entry.attempts, entry.row])
        }
        try db.execute(sql: "DELETE FROM lease")
    }
}

extension DeliveryRecord {
    /// As it is read while it is leased. Where the row has the attempt already, its outcome was written since the leases were looked at.
    mutating func apply(_ leases: [Int64: DeliveryLeases.Lease]) {
        guard let row, let lease = leases[row], attempts < lease.attempts, DeliveryState.open.contains(state) else { return }
        (state, attempts, dueAt) = (.leased, lease.attempts, lease.dueAt)
    }
}
