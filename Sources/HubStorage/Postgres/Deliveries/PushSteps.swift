import HubDelivery

/// Steps of pushes whose rows were read, to be added in one statement.
struct PushSteps {
    /// Outcome of a push ended by a receipt. On an open row: a receipt came during the attempt.
    static let receipt = "receipt"

    private var pushes: [StoredPush] = []
    private var isFresh: [Bool] = []
    private var expiresAt: [Int64?] = []
    private var logs: [String?] = []

    /// The push as it is from now on.
    /// - Parameters:
    ///   - isFresh: its earlier attempts do not count any more.
    ///   - expiresAt: replaces the message's; in milliseconds since 1970.
    ///   - log: line of the attempt that ended, in the form of `AttemptLog`.
    mutating func add(_ push: StoredPush, isFresh: Bool = false, expiresAt: Int64? = nil, log: String? = nil) {
        logs.append(log)
        pushes.append(push)
        self.isFresh.append(isFresh)
        self.expiresAt.append(expiresAt)
    }

    /// Nil for none.
    var statement: PostgresStatement? {
        if pushes.isEmpty { return nil }
        return PostgresStatement(
            """
            INSERT INTO tandem.push_step (day, push, state, due_at, attempts, provider_id, outcome, is_final, is_fresh, expires_at, log)
            SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::boolean[],
              $9::boolean[], $10::bigint[], $11::text[])
            """,
            [
                .ints(pushes.map { Int64($0.day) }), .ints(pushes.map(\.number)), .texts(pushes.map(\.record.state.rawValue)),
                .ints(pushes.map(\.record.dueAt)), .ints(pushes.map { Int64($0.record.attempts) }), .texts(pushes.map(\.record.providerID)),
                .texts(pushes.map(\.record.outcome)), .bools(pushes.map { !PushState.open.contains($0.record.state) }), .bools(isFresh),
                .ints(expiresAt), .texts(logs),
            ])
    }
}
