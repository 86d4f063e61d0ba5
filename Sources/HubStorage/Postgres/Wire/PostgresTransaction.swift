/// A transaction on one connection, as the store's calls see it. Valid only inside the call that it is given to.
final class PostgresTransaction {
    private let connection: PostgresConnection
    private let deadline: ContinuousClock.Instant
    /// Statements that travel with the next ones.
    private var pending: [PostgresStatement] = []
    /// Whether a statement has been sent.
    private var isSent = false
    /// Place in `pending` of the statement that tells the transaction's number.
    private var numberPlace: Int?
    /// Whether the server has refused a statement, so that it takes no others until a savepoint is restored.
    private var hasFailed = false

    init(_ connection: PostgresConnection, deadline: ContinuousClock.Instant) {
        self.connection = connection
        self.deadline = deadline
    }

    /// Runs `work` in a transaction, which ends with COMMIT, or with ROLLBACK where `work` fails.
    /// - Parameter level: isolation level, in SQL.
    static func run<Value>(
        _ level: String, _ connection: PostgresConnection, _ deadline: ContinuousClock.Instant, _ work: (PostgresTransaction) throws -> Value
    ) throws -> Value {
        let tx = PostgresTransaction(connection, deadline: deadline)
        tx.queue("BEGIN ISOLATION LEVEL \(level)")
        tx.queue("SELECT \(withoutJIT)")
        do {
            let value = try work(tx)
            try tx.commit()
            return value
        } catch {
            if let failure = error as? PostgresFailure, case .lost = failure { throw failure }
            try tx.rollBack()
            throw error
        }
    }

    /// Keeps the server from compiling queries: that takes seconds where a part of today has no statistics yet, and gains nothing.
    private static let withoutJIT = "set_config('jit', 'off', true)"

    /// Adds a statement whose result nobody reads. An error of it appears at the next statement.
    func queue(_ sql: String, _ values: [PostgresValue] = []) { pending.append(PostgresStatement(sql, values)) }

    /// Carries out statements in one round trip.
    /// - Returns: a result per statement.
    func all(_ statements: [PostgresStatement]) throws -> [PostgresRows] {
        let before = pending.count
        let whole = pending + statements
        let numberPlace = numberPlace
        (pending, self.numberPlace) = ([], nil)
        isSent = isSent || !whole.isEmpty
        do {
            // The reading of a long answer takes time of the call, and is no delay of the server.
            let results = try connection.run(whole, deadline: max(deadline, .now + PostgresConnection.silenceMax))
            if let numberPlace { number = results[numberPlace].first?.int("number") }
            return Array(results.dropFirst(before))
        } catch {
            hasFailed = true
            throw error
        }
    }

    /// Carries out one statement.
    @discardableResult
    func query(_ sql: String, _ values: [PostgresValue] = []) throws -> PostgresRows {
        try all([PostgresStatement(sql, values)])[0]
    }

    /// Remembers how to take the call's writes back, should the answer to the commit be lost. The other calls' writes are not its concern.
    func onUnknown(_ undo: @escaping @Sendable (PostgresTransaction) throws -> Void) { self.undo.append(undo) }

    // MARK: For the writer

    /// The transaction's number; nil until the server has told it, and so before anything was written.
    private(set) var number: Int64?

    /// Begins behind a fence. Both travel with the first statements of the first call.
    func begin(behind fence: PostgresStatement) {
        assert(pending.isEmpty, "a transaction begins with its fence")
        pending = [PostgresStatement("BEGIN ISOLATION LEVEL READ COMMITTED"), fence]
        askForNumber()
    }

    private func askForNumber() {
        numberPlace = pending.count
        queue("SELECT pg_current_xact_id()::text::bigint AS number, \(Self.withoutJIT)")
    }

    /// Works that take back the writes, in the order of the calls.
    private(set) var undo: [@Sendable (PostgresTransaction) throws -> Void] = []
    /// Where the call under way began: what waited then, the round trips by then, and how many could be taken back.
    private var call = (pending: 0, trips: 0, undo: 0)

    /// Sets a savepoint, which travels with the call's first statement.
    func beginCall() {
        call = (pending.count, connection.roundTrips, undo.count)
        queue("SAVEPOINT call")
    }

    /// Sends what the call left waiting, so that an error of it is the call's own.
    func endCall() throws {
        if pending.count > (connection.roundTrips == call.trips ? call.pending + 1 : 0) { _ = try all([]) }
    }

    /// Takes back the call's writes.
    func undoCall() {
        undo.removeSubrange(call.undo...)
        if connection.roundTrips == call.trips, !hasFailed {
            // Nothing of the call was sent, its savepoint included.
            pending.removeSubrange(call.pending...)
        } else {
            pending = [PostgresStatement("ROLLBACK TO SAVEPOINT call")]
            hasFailed = false
            // The statement that tells the number was refused with the call.
            if number == nil { askForNumber() }
        }
    }

    /// Ends the transaction without its writes, also after a refused statement.
    func rollBack() throws {
        (pending, numberPlace) = ([], nil)
        hasFailed = false
        if isSent { try query("ROLLBACK") }
    }

    /// - Throws: `PostgresFailure.lost` if the outcome is unknown.
    func commit() throws {
        let tag = try all([PostgresStatement("COMMIT")])[0].tag
        guard tag == "COMMIT" else { throw PostgresFailure.refused(state: "25P02", message: "the transaction was rolled back") }
    }
}
