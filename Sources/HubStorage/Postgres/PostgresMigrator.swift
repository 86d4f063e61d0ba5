internal import Foundation

/// Brings the schema `tandem` to this build's version, under a lock that other hubs wait for.
enum PostgresMigrator {
    /// Time for all migrations.
    static let durationMax: Duration = .seconds(60)
    /// Oldest server: `MERGE`, `pg_xact_status` and parts attached without a lock on the readers.
    static let serverVersionMin = 150_000

    /// Facts of the database that a store needs.
    struct Found: Sendable {
        /// Days that have parts.
        let days: Set<Int32>
        /// A number that no other process has.
        let process: Int64
        let facts: DatabaseFacts
    }

    /// - Parameter now: milliseconds since 1970 by this machine's clock.
    static func migrate(
        _ connection: PostgresConnection, _ deadline: ContinuousClock.Instant, now: () -> Int64
    ) throws -> Found {
        guard connection.serverVersion >= serverVersionMin else {
            throw StorageError(.database, "PostgreSQL \(connection.serverVersion / 10_000) is too old for the store; use 15 or later")
        }
        let tx = PostgresTransaction(connection, deadline: deadline)
        tx.queue("BEGIN ISOLATION LEVEL READ COMMITTED")
        tx.queue("SELECT pg_advisory_xact_lock(hashtext('tandem.migration'))")
        let facts = try tx.query(
            "SELECT current_setting('server_encoding') AS encoding, to_regclass('tandem.version') IS NOT NULL AS is_known"
        ).first
        guard facts?.text("encoding") == "UTF8" else {
            throw StorageError(.database, "the database's encoding is not UTF8; create it with ENCODING 'UTF8'")
        }
        if facts?.bool("is_known") != true {
            // The schema may exist already, made by somebody who grants no right to create one.
            let hasSchema = try tx.query("SELECT to_regnamespace('tandem') IS NOT NULL AS is_there").first?.bool("is_there") ?? false
            if !hasSchema { tx.queue("CREATE SCHEMA tandem") }
            tx.queue("CREATE TABLE tandem.version (number bigint NOT NULL)")
            try tx.query("INSERT INTO tandem.version VALUES (0)")
        }
        let version = try version(tx)
        if let problem = version.problem { throw StorageError(.newerSchema, problem) }
        for migration in PostgresSchema.migrations where migration.number > version.number {
            for statement in statements(of: migration.sql) { tx.queue(statement) }
        }
        if version.number < PostgresSchema.version {
            tx.queue("ALTER TABLE tandem.version ADD COLUMN IF NOT EXISTS oldest bigint")
            try tx.query(
                "UPDATE tandem.version SET number = $1, oldest = $2", [.int(PostgresSchema.version), .int(PostgresSchema.oldest)])
        }
        if let problem = try partitionProblem(tx) { throw StorageError(.otherPartitions, problem) }
        let days = try tx.query("SELECT day FROM tandem.day").map { Int32(clamping: $0.int("day")) }
        let process = try tx.query("SELECT nextval('tandem.process_number') AS number").first?.int("number") ?? 0
        let found = try DatabaseFacts.read(tx, now: now)
        try tx.commit()
        return Found(days: Set(days), process: process, facts: found)
    }

    /// Version of the schema in a database, and of the oldest build that works with it.
    struct Version: Sendable, Equatable {
        let number: Int64
        let oldest: Int64

        /// Why this build cannot work with the schema, though a newer one can; nil: it can, or may migrate it.
        var problem: String? {
            if oldest <= PostgresSchema.version { return nil }
            return "the schema `tandem` has version \(number) of a newer Tandem; start that one, this one knows \(PostgresSchema.version)"
        }
    }

    /// The schema's version. A database of an early build has no column for the oldest one: that was the same.
    static func version(_ tx: PostgresTransaction) throws -> Version {
        let row = try tx.query(
            "SELECT number, coalesce((to_jsonb(v) ->> 'oldest')::bigint, number) AS oldest FROM tandem.version v"
        ).first
        return Version(number: row?.int("number") ?? 0, oldest: row?.int("oldest") ?? 0)
    }

    /// Why the partitions of the database are not those of this build; nil: they are.
    static func partitionProblem(_ tx: PostgresTransaction) throws -> String? {
        let row = try tx.query("SELECT count(*) AS count, min(partition) AS first, max(partition) AS last FROM tandem.lease").first
        let count = Int64(LeaseBook.partitionCount)
        if row?.int("count") == count, row?.int("first") == 0, row?.int("last") == count - 1 { return nil }
        return "the database was made with \(row?.int("count") ?? 0) partitions and this Tandem has \(count): nodes would disagree about "
            + "who owns what; start the build that made it, or copy its rows into a new database with tandem store copy"
    }

    /// The statements of a script; a function's body stands between `$$` and may hold semicolons.
    private static func statements(of script: String) -> [String] {
        var statements: [String] = []
        var isInBody = false
        var current = ""
        for line in script.split(separator: "\n", omittingEmptySubsequences: false) {
            let code = line.range(of: " -- ").map { line[..<$0.lowerBound] } ?? line
            current += code + "\n"
            if code.ranges(of: "$$").count % 2 == 1 { isInBody.toggle() }
            guard !isInBody, code.last(where: { !$0.isWhitespace }) == ";" else { continue }
            statements.append(current)
            current = ""
        }
        return statements
    }
}
