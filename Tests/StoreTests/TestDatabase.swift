import Foundation
import HubTesting

@testable import HubStorage

/// A PostgreSQL database that tests use one after another, each without the schema `tandem` at first.
final class TestDatabase: Sendable {
    static let direct = TestDatabase(variable: "TANDEM_TEST_POSTGRES")
    /// Another database, behind PgBouncer.
    static let pooled = TestDatabase(variable: "TANDEM_TEST_PGBOUNCER")

    private static let dropMax: Duration = .seconds(30)

    private let address: String
    private let turns = Turns()

    /// Nil where the environment has no address.
    private init?(variable: String) {
        guard let address = ProcessInfo.processInfo.environment[variable], !address.isEmpty else { return nil }
        self.address = address
    }

    /// Runs `body` with the address while no other test uses the database.
    func withTurn(_ body: @Sendable (String) async throws -> Void) async throws {
        await turns.take()
        do {
            try await withTaskExecutorPreference(BlockingThreads.shared) { try dropSchema() }
            try await body(address)
        } catch {
            await turns.pass()
            throw error
        }
        await turns.pass()
    }

    /// The address by another port of this machine.
    static func address(_ address: String, port: UInt16) -> String {
        var parts = URLComponents(string: address)
        parts?.port = Int(port)
        return parts?.string ?? address
    }

    static func port(of address: String) -> UInt16 { UInt16(URLComponents(string: address)?.port ?? 5432) }

    /// Runs statements as another program would.
    static func run(_ statements: [String], at address: String) throws -> [PostgresRows] {
        let deadline = ContinuousClock.now + dropMax
        let connection = try PostgresConnection(address: address, name: "tandem tests", deadline: deadline)
        return try connection.run(statements.map { PostgresStatement($0) }, deadline: deadline)
    }

    /// Another program's connection, for transactions of several calls.
    static func connection(at address: String) throws -> (String) throws -> Void {
        let connection = try PostgresConnection(address: address, name: "tandem tests", deadline: .now + dropMax)
        return { script in
            let statements = script.split(separator: ";").map { PostgresStatement(String($0)) }
            _ = try connection.run(statements, deadline: .now + dropMax)
        }
    }

    private func dropSchema() throws {
        let deadline = ContinuousClock.now + Self.dropMax
        let connection = try PostgresConnection(address: address, name: "tandem tests", deadline: deadline)
        // Otherwise the server tells of every table that goes.
        let statements = [
            "BEGIN", "SELECT set_config('client_min_messages', 'warning', true)", "DROP SCHEMA IF EXISTS tandem CASCADE", "COMMIT",
        ]
        _ = try connection.run(statements.map { PostgresStatement($0) }, deadline: deadline)
    }
}

/// A queue of tests, of which one runs at a time.
private actor Turns {
    private var isTaken = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func take() async {
        if isTaken { await withCheckedContinuation { waiting.append($0) } }
        isTaken = true
    }

    /// Lets the next test run; the turn stays taken if one waits.
    func pass() {
        if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() }
    }
}
