import GRDB
package import HubDelivery
import Synchronization

extension SQLiteStore {
    /// `RedirectionStore.redirect`: all rulings in one transaction, each by the rows as they are then.
    package func redirect(_ redirections: [Redirection], now: Int64) async throws -> [RedirectionOutcome] {
        if redirections.isEmpty { return [] }
        let freedLeases = Mutex<[Int64: PushLeases.Lease]>([:])
        do {
            return try await write(rows: redirections.count) { [leases] db in
                let update = try PushUpdate(db)
                let leased = leases.current
                return try redirections.map { redirection in
                    guard let row = try update.openRow(of: redirection.delivery) else { return .gone }
                    let ruling = redirection.ruling(beside: try Self.others(of: redirection.delivery, row: row, leased, db))
                    switch ruling {
                    case .waits: return .waits
                    case .goesOn(let devices): return .goesOn(try Self.insert(devices, redirection, now: now, db))
                    case .ends(let state, let outcome, let devices):
                        var delivery = redirection.delivery
                        (delivery.state, delivery.outcome) = (state, outcome)
                        let ended = try update.end(delivery)
                        assert(ended == row, "a push of row \(row) ended in row \(ended.map(String.init) ?? "none")")
                        let freed = try leases.end([row], db)
                        freedLeases.withLock { $0.merge(freed) { first, _ in first } }
                        return .ended(delivery, try Self.insert(devices, redirection, now: now, db))
                    }
                }
            }
        } catch {
            leases.restore(freedLeases.withLock { $0 })
            throw error
        }
    }

    private static func insert(_ devices: [String], _ redirection: Redirection, now: Int64, _ db: Database) throws -> [PushRecord] {
        try WrittenPushes(devices.map { redirection.successor(on: $0, now: now) }).insert(ignoringKnown: true, db)
    }

    /// The person's other notifications of the same event.
    private static func others(
        of delivery: PushRecord, row: Int64, _ leased: [Int64: PushLeases.Lease], _ db: Database
    ) throws -> [RedirectionRow] {
        try Row.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT rowid AS row, device, state, attempts_log FROM delivery
                    WHERE event = ? AND user = ? AND device <> '' AND NOT \(DeviceColumn.isClear)
                    """), arguments: [delivery.event, delivery.user]
        ).compactMap { found in
            let number: Int64 = found["row"]
            guard number != row else { return nil }
            // A state of a newer version counts as ended.
            let isOpen = PushState(rawValue: found["state"]).map(PushState.open.contains) ?? false
            let attempts = (found["attempts_log"] as String?).map { AttemptLog.decode($0).attempts } ?? []
            return RedirectionRow(
                device: found["device"], isOpen: isOpen, isLeased: isOpen && leased[number] != nil,
                accepted: attempts.filter { $0.answer == PushState.accepted.rawValue }.compactMap(\.token))
        }
    }
}
