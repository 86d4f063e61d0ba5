/// Facts of a PostgreSQL store for `tandem check --live`. Reads only; makes no schema.
package enum PostgresCheck {
    /// The answer of a server.
    package struct Answer: Sendable, Equatable {
        /// Version of the server, version of its schema, and the wait of a commit.
        package let facts: String
        /// Settings that lose what was answered, each with its remedy.
        package let warnings: [String]
        /// As the backplane compares it.
        package let database: DatabaseFacts
    }

    /// Asks the server once.
    /// - Parameters:
    ///   - address: as of `PostgresStore`.
    ///   - now: milliseconds since 1970 by this machine's clock.
    /// - Throws: `StorageError` if the server does not answer in ten seconds, or refuses, or if the database is that of another build.
    package static func ask(_ address: String, now: @escaping @Sendable () -> Int64) async throws(StorageError) -> Answer {
        let link = PostgresLink(address: address, name: "tandem check", outage: PostgresOutage())
        do {
            return try await link.run(within: .seconds(10)) { connection, deadline in try answer(connection, deadline, now) }
        } catch {
            throw (error as? StorageError) ?? (error as? PostgresFailure).map(StorageError.init)
                ?? StorageError(.database, "PostgreSQL: \(error)")
        }
    }

    private static func answer(
        _ connection: PostgresConnection, _ deadline: ContinuousClock.Instant, _ now: () -> Int64
    ) throws -> Answer {
        let tx = PostgresTransaction(connection, deadline: deadline)
        guard
            let row = try tx.query(
                """
                SELECT current_setting('server_version') AS version, to_regclass('tandem.version') IS NOT NULL AS has_schema,
                  current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commits,
                  current_setting('synchronous_standby_names') AS standbys, pg_is_in_recovery() AS is_standby,
                  has_database_privilege(current_database(), 'CREATE') AS may_create,
                  (SELECT count(*) FROM pg_stat_replication) AS replicas
                """
            ).first
        else { throw PostgresFailure.lost("it answered with nothing") }
        let schema = row.bool("has_schema") ? try PostgresMigrator.version(tx) : nil
        var warnings: [String] = []
        if row.bool("is_standby") {
            warnings.append("this server is a standby, which takes no writes: add target_session_attrs=read-write to the address")
        }
        if row.text("fsync") == "off" { warnings.append("fsync is off: a power loss takes events that were answered; turn it on") }
        if row.text("commits") == "off" {
            warnings.append("synchronous_commit is off: a crash of the server takes events that were answered; turn it on")
        }
        if row.int("replicas") > 0, row.text("standbys").isEmpty {
            warnings.append("replicas lag: a failover takes events that were answered; set synchronous_standby_names")
        }
        if schema == nil, !row.bool("may_create") {
            warnings.append("the role may not create the schema: GRANT CREATE ON DATABASE to it, or create the schema `tandem` for it")
        }
        if let problem = schema?.problem { throw StorageError(.newerSchema, problem) }
        if schema != nil, let problem = try PostgresMigrator.partitionProblem(tx) { throw StorageError(.otherPartitions, problem) }
        let database = try DatabaseFacts.read(tx, now: now)
        if let warning = database.clockWarning { warnings.append(warning) }
        let state = schema.map { "schema \($0.number) of \(PostgresSchema.version)" } ?? "no schema yet"
        return Answer(
            facts: "PostgreSQL \(row.text("version")), \(state), commits \(row.text("commits"))", warnings: warnings,
            database: database)
    }
}
