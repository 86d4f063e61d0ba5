/// A failure of the way to PostgreSQL, or an answer that refuses a statement.
enum PostgresFailure: Error, Equatable {
    /// The server refused a statement.
    /// - `state`: SQLSTATE, five characters.
    /// - `message`: the server's first line, which names tables and columns and no value.
    case refused(state: String, message: String)
    /// The connection ended, could not be made, or answered nothing in time. The outcome of the statements under way is unknown.
    case lost(String)

    /// SQLSTATE of a row that exists already.
    static let uniqueViolation = "23505"
    /// SQLSTATE of `tandem.fence`: a partition has another owner, or a later epoch.
    static let fenced = "TN001"

    var state: String? { if case .refused(let state, _) = self { state } else { nil } }

    /// Whether the server will refuse every write for now: no space, too many connections, read-only, starting or stopping.
    var isOfTheServer: Bool {
        guard let state else { return true }
        return state == Self.fenced || state.hasPrefix("53") || state.hasPrefix("57P") || state.hasPrefix("58") || state == "25006"
            || state.hasPrefix("08")
    }

    /// Whether the disk is full.
    var isFull: Bool { state == "53100" }
}

extension StorageError {
    /// A failure as an operator reads it.
    init(_ failure: PostgresFailure) {
        switch failure {
        case .lost(let reason): self.init(.unavailable, "PostgreSQL does not answer (\(reason)); look at its log and at the network")
        case .refused(PostgresFailure.fenced, _):
            self.init(.unavailable, "this hub does not own its part of the database any more; another one took it over")
        case .refused("53100", _): self.init(.unavailable, "PostgreSQL's disk is full; free some space")
        case .refused("25006", _):
            self.init(
                .unavailable, "PostgreSQL takes no writes; name the primary, with target_session_attrs=read-write in the store's address")
        case .refused(let state, let message):
            self.init(failure.isOfTheServer ? .unavailable : .database, "PostgreSQL refused a statement: \(message) (\(state))")
        }
    }
}
