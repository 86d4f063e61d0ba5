import Synchronization

/// Writes the calls of one group commit in one transaction.
///
/// A commit whose answer is lost may have been carried out. Its calls fail. Before the next transaction the writer asks the server what
/// became of it, and takes back what was committed. Nothing is taken back once somebody else owns it.
final class PostgresWriter: Sendable {
    /// A transaction without a known end.
    private struct Unknown {
        let transaction: Int64
        /// Fence over all that this process owned.
        let fence: PostgresStatement
        let undo: [@Sendable (PostgresTransaction) throws -> Void]
    }

    private let link: PostgresLink
    private let node: PostgresNode
    private let unknown = Mutex<[Unknown]>([])

    init(link: PostgresLink, node: PostgresNode) {
        self.link = link
        self.node = node
        node.giveBack(by: { [weak self] in try await self?.giveBack($0) })
    }

    /// Ends the connection.
    func close() async { await link.close() }

    /// Transactions whose outcome nobody knows yet.
    var unknownCount: Int { unknown.withLock { $0.count } }

    /// - Parameter rows: that the calls announced.
    /// - Returns: one result per call.
    /// - Throws: `PostgresFailure` if nothing is known to be committed.
    func write(_ calls: [GroupCommit<PostgresTransaction>.Call], rows: Int) async throws -> [Result<Void, any Error>] {
        let settle = settleUnknown
        let duration = PostgresLink.callMax + PostgresLink.perRow * rows
        return try await link.run(within: duration, greeting: settle) { [self] connection, deadline in
            if unknownCount > 0 { try settle(connection, deadline) }
            let tx = PostgresTransaction(connection, deadline: deadline)
            do {
                return try write(calls, tx)
            } catch let failure as PostgresFailure where failure.state != nil {
                // The connection stays in use, and its transaction does not.
                try tx.rollBack()
                throw failure
            }
        }
    }

    /// Gives partitions to other nodes. Nothing of theirs is under way then, and what had no answer has been taken back. The fence
    /// would refuse that afterwards.
    private func giveBack(_ partitions: [Int32]) async throws {
        let settle = settleUnknown
        try await link.run(within: .seconds(3), greeting: settle) { [self] connection, deadline in
            if unknownCount > 0 { try settle(connection, deadline) }
            _ = try connection.run(
                [
                    PostgresStatement(
                        "UPDATE tandem.lease SET owner = 0 WHERE owner = $1 AND partition = ANY($2)",
                        [.int(node.number), .ints(partitions.map(Int64.init))])
                ], deadline: deadline)
        }
    }

    private func write(_ calls: [GroupCommit<PostgresTransaction>.Call], _ tx: PostgresTransaction) throws -> [Result<Void, any Error>] {
        let fence = try node.fence()
        tx.begin(behind: fence)
        let results = try calls.map { try Self.perform($0, in: tx, isAlone: calls.count == 1) }
        if calls.count == 1, case .failure = results[0] {
            try tx.rollBack()
            return results
        }
        do {
            try tx.commit()
        } catch PostgresFailure.lost(let reason) {
            if let number = tx.number { unknown.withLock { $0.append(Unknown(transaction: number, fence: fence, undo: tx.undo)) } }
            throw PostgresFailure.lost(reason)
        }
        return results
    }

    /// Runs one call between savepoints, so that its failure stays its own.
    private static func perform(
        _ call: GroupCommit<PostgresTransaction>.Call, in tx: PostgresTransaction, isAlone: Bool
    ) throws -> Result<Void, any Error> {
        if !isAlone { tx.beginCall() }
        do {
            try call.perform(tx)
            try tx.endCall()
            return .success(())
        } catch {
            // The server refuses everything: the other calls would fail, too.
            if let failure = error as? PostgresFailure, failure.isOfTheServer { throw failure }
            if !isAlone { tx.undoCall() }
            return .failure(error)
        }
    }

    /// Finds out what became of transactions without an answer, and takes back what they wrote.
    private func settleUnknown(_ connection: PostgresConnection, _ deadline: ContinuousClock.Instant) throws {
        for entry in unknown.withLock({ $0 }) {
            let tx = PostgresTransaction(connection, deadline: deadline)
            // A backend that still works on the transaction ends first: a stopped or cut one would hold its locks for ever.
            let state = try tx.all([
                PostgresStatement(
                    "SELECT pg_terminate_backend(pid, 500) FROM pg_stat_activity WHERE backend_xid::text = $1",
                    [.text(String(entry.transaction & 0xFFFF_FFFF))]),
                PostgresStatement("SELECT pg_xact_status($1::text::xid8) AS state", [.text(String(entry.transaction))]),
            ])[1].first?.textOrNil("state")
            if state == "in progress" { throw PostgresFailure.lost("a transaction without an answer is still under way") }
            if state != "aborted" {
                do {
                    tx.begin(behind: entry.fence)
                    for undo in entry.undo { try undo(tx) }
                    try tx.commit()
                } catch let failure as PostgresFailure where failure.state == PostgresFailure.fenced {
                    // A successor has read what was committed, and acts on it.
                    try tx.rollBack()
                }
            }
            unknown.withLock { $0.removeAll { $0.transaction == entry.transaction } }
        }
    }
}
