internal import HubCore

/// A PostgreSQL database as the nodes that share it compare it.
package struct DatabaseFacts: Sendable, Equatable {
    /// Tells the database from all others, copies included; nil: the role may not ask the server for it.
    package let identity: String?
    /// How far this machine's clock is ahead of the server's, in milliseconds.
    package let clockAhead: Int64

    /// - Parameter now: milliseconds since 1970 by this machine's clock.
    static func read(_ tx: PostgresTransaction, now: () -> Int64) throws -> DatabaseFacts {
        let before = now()
        let row = try tx.query(
            """
            SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now,
              has_function_privilege('pg_control_system()', 'EXECUTE') AS may_ask
            """
        ).first
        let ahead = ClockDifference.ahead(before: before, after: now(), server: row?.int("now") ?? 0)
        guard row?.bool("may_ask") == true else { return DatabaseFacts(identity: nil, clockAhead: ahead) }
        let names = try tx.query(
            "SELECT system_identifier || '-' || d.oid AS name FROM pg_control_system(), pg_database d WHERE d.datname = current_database()")
        return DatabaseFacts(identity: names.first?.text("name"), clockAhead: ahead)
    }

    /// Warning about the clocks; nil: they agree.
    package var clockWarning: String? { ClockDifference.warning(ahead: clockAhead, of: "PostgreSQL") }
}
