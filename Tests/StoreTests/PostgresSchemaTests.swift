import HubCore
import HubDelivery
import HubTesting
import StoreTesting
import Testing

@testable import HubStorage

/// The store keeps one version back: nodes of two builds share a database during a rolling upgrade.
@Suite("The schema's version") struct PostgresSchemaTests {
    /// A database holds what a migration once made of it, so a released one is never edited. Only the last number may be new.
    @Test("no migration changes once it was released")
    func frozen() {
        let found = PostgresSchema.migrations.map { Partition.stableHash($0.sql) }
        #expect(
            found == [
                1473267646929259635, 10835680373123913511, 11746525630783764226, 6324820624543220221, 1550537046669351196,
            ], "\(found)")
        #expect(PostgresSchema.migrations.map(\.number) == Array(1...Int64(found.count)))
    }

    @Test("the build before works with the tables of this one")
    func oneBack() {
        #expect(PostgresSchema.oldest <= max(1, PostgresSchema.version - 1), "a rolling upgrade needs the build before")
        for migration in PostgresSchema.migrations where migration.number > 3 && migration.oldest < migration.number {
            for word in ["DROP ", "RENAME ", "ALTER COLUMN", "TRUNCATE"] {
                // No statement needs an index.
                let sql = migration.sql.uppercased().replacing("DROP INDEX", with: "")
                #expect(!sql.contains(word), "\(migration.number) takes away what the build before needs: \(word)")
            }
        }
    }

    @Test("a newer schema is taken if it names this build, and refused if it does not", .enabled(if: TestDatabase.direct != nil))
    func newer() async throws {
        try await TestDatabase.direct?.withTurn { address in
            let first = try await PostgresStore(address: address, time: TestClock())
            let version = try #require(try TestDatabase.run(["SELECT number, oldest FROM tandem.version"], at: address)[0].first)
            #expect(version.int("number") == PostgresSchema.version && version.int("oldest") == PostgresSchema.oldest)
            // The next build has come meanwhile, and has added what this one does not know.
            let next = PostgresSchema.version + 1
            _ = try TestDatabase.run(
                [
                    "ALTER TABLE tandem.event ADD COLUMN later bigint NOT NULL DEFAULT 0", "CREATE TABLE tandem.later (a bigint)",
                    "UPDATE tandem.version SET number = \(next), oldest = \(PostgresSchema.version)",
                ], at: address)
            _ = try await first.commit([EventCommit(.sample("a"))])
            try await first.close()
            let again = try await PostgresStore(address: address, time: TestClock())
            _ = try await again.commit([EventCommit(.sample("b"))])
            #expect(try await again.event(id: "a") != nil)
            try await again.close()
            let left = try TestDatabase.run(["SELECT number FROM tandem.version"], at: address)[0].first?.int("number")
            #expect(left == next, "an older build leaves the version alone")

            _ = try TestDatabase.run(["UPDATE tandem.version SET number = \(next + 1), oldest = \(next)"], at: address)
            let error = await #expect(throws: StorageError.self) { _ = try await PostgresStore(address: address, time: TestClock()) }
            #expect(error?.code == .newerSchema)
        }
    }

    @Test("a database of a build that names no oldest one is known, and refused if it is newer", .enabled(if: TestDatabase.direct != nil))
    func unnamed() async throws {
        try await TestDatabase.direct?.withTurn { address in
            try await PostgresStore(address: address, time: TestClock()).close()
            _ = try TestDatabase.run(["ALTER TABLE tandem.version DROP COLUMN oldest"], at: address)
            try await PostgresStore(address: address, time: TestClock()).close()
            _ = try TestDatabase.run(["UPDATE tandem.version SET number = \(PostgresSchema.version + 1)"], at: address)
            let error = await #expect(throws: StorageError.self) { _ = try await PostgresStore(address: address, time: TestClock()) }
            #expect(error?.code == .newerSchema)
        }
    }
}
