package import HubDelivery
import Synchronization

extension PostgresStore {
    /// `RedirectionStore.redirect`: all rulings in one transaction, each by the rows as they are then.
    package func redirect(_ redirections: [Redirection], now: Int64) async throws -> [RedirectionOutcome] {
        if redirections.isEmpty { return [] }
        let leased = leases.withLock { $0 }
        let numbers = numbers
        let (outcomes, freed) = try await write(rows: redirections.count) { tx in
            var freed: [Int64] = []
            let outcomes = try redirections.map { redirection -> RedirectionOutcome in
                let delivery = redirection.delivery
                let rows = try PushReader(tx, withMessages: false).pushes(
                    "p.event = $1 AND p.user_id = $2 AND p.device <> '' AND NOT \(PushReader.isClear)",
                    [.text(delivery.event), .text(delivery.user)])
                guard var own = rows.first(where: { $0.record.device == delivery.device }), PushState.open.contains(own.record.state) else {
                    return .gone
                }
                let others = rows.filter { $0.number != own.number }.map { other in
                    let isOpen = other.problem == nil && PushState.open.contains(other.record.state)
                    return RedirectionRow(
                        device: other.record.device, isOpen: isOpen, isLeased: isOpen && leased.contains(other.number),
                        accepted: AttemptLog.decode(other.log).attempts.filter { $0.answer == PushState.accepted.rawValue }
                            .compactMap(\.token))
                }
                switch redirection.ruling(beside: others) {
                case .waits: return .waits
                case .goesOn(let devices):
                    return .goesOn(try Self.insert(devices, redirection, now: now, numbers, tx))
                case .ends(let state, let outcome, let devices):
                    var ended = delivery
                    (ended.state, ended.outcome) = (state, outcome)
                    own.record = ended
                    if state == .failed { own.record.dueAt = delivery.attempt?.endedAt ?? delivery.dueAt }
                    var steps = PushSteps()
                    steps.add(own, log: delivery.attempt.map(AttemptLog.line))
                    if let statement = steps.statement { try tx.query(statement.sql, statement.values) }
                    freed.append(own.number)
                    return .ended(ended, try Self.insert(devices, redirection, now: now, numbers, tx))
                }
            }
            return (outcomes, freed)
        }
        leases.withLock { $0.subtract(freed) }
        return outcomes
    }

    private static func insert(
        _ devices: [String], _ redirection: Redirection, now: Int64, _ numbers: TextNumbers, _ tx: PostgresTransaction
    ) throws -> [PushRecord] {
        let rows = WrittenRows(devices.map { redirection.successor(on: $0, now: now) }, numbers: numbers)
        return rows.inserted(try tx.all(rows.statements).last)
    }
}
