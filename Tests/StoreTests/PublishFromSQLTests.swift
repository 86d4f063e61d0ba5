import HubCore
import HubDelivery
import HubTesting
import StoreTesting
import Testing

@testable import HubStorage

/// `tandem.publish` in other programs' transactions.
@Suite("Publish from SQL", .enabled(if: TestDatabase.direct != nil)) struct PublishFromSQLTests {
    @Test("a commit is a publish that is due, a rollback is nothing, and a listener is woken")
    func commits() async throws {
        try await TestDatabase.direct?.withTurn { address in
            let store = try await PostgresStore(address: address, time: TestClock())
            let wakes = Guarded(0)
            let listening = Task { await store.listen { wakes.withLock { $0 += 1 } } }
            _ = try TestDatabase.run(
                ["BEGIN", "SELECT tandem.publish('1', 'news', 'undone', 'a')", "ROLLBACK"], at: address)
            let before = wakes.withLock { $0 }
            _ = try TestDatabase.run(
                [
                    "BEGIN", "SELECT tandem.publish('1', 'news', 'first', 'a \"b\"')", "SELECT tandem.publish('1', 'news', 'second', '{}')",
                    "SELECT tandem.publish('1', 'news', 'later', '', NULL, now() + interval '1 day')", "COMMIT",
                ], at: address)
            let due = try await store.dueScheduled(now: .max, limit: 10)
            #expect(
                due.map { String(decoding: $0.request, as: UTF8.self) } == [
                    #"{"name":"first","channels":["news"],"data":"a \"b\""}"#, #"{"name":"second","channels":["news"],"data":"{}"}"#,
                    #"{"name":"later","channels":["news"],"data":""}"#,
                ])
            #expect(due.allSatisfy { $0.app == "1" && $0.state == .waiting } && due[2].deliverAt - due[0].deliverAt > 86_000_000)
            #expect(await eventually { wakes.withLock { $0 } > before })
            try await store.close()
            await listening.value
        }
    }

    @Test("a wait for notifications ends in time, also while the server answers others")
    func waits() async throws {
        try await TestDatabase.direct?.withTurn { address in
            let (pulse, end) = (PostgresPulse(), ContinuousClock.now + .seconds(1))
            let connection = try PostgresConnection(address: address, name: "tandem tests", deadline: end + .seconds(30), pulse: pulse)
            let answers = Task {
                while !Task.isCancelled {
                    pulse.beat()
                    try await Task.sleep(for: .milliseconds(10))
                }
            }
            defer { answers.cancel() }
            #expect(try connection.waitForNotification(until: end).isEmpty)
            #expect(ContinuousClock.now < end + PostgresPulse.patienceMax)
        }
    }

    @Test("a key is published once in a day")
    func keys() async throws {
        try await TestDatabase.direct?.withTurn { address in
            let store = try await PostgresStore(address: address, time: TestClock())
            let ids = try TestDatabase.run(
                (0..<3).map { "SELECT tandem.publish('\($0 / 2 + 1)', 'news', 'e', '\($0)', 'order-7') AS id" }, at: address
            ).compactMap { $0.first?.text("id") }
            #expect(ids.count == 3 && ids[0] == ids[1] && ids[1] != ids[2])
            #expect(try await store.dueScheduled(now: .max, limit: 10).count == 2)
            try await store.close()
        }
    }

    @Test(
        "wrong arguments fail in the caller's transaction, with what is wrong",
        arguments: [
            ("NULL, 'c', 'e', ''", "app is missing"), ("'1', 'a b', 'e', ''", "\"a b\" is no channel's name"),
            ("'1', 'c', 'pusher:x', ''", "\"pusher:x\" is no event's name"), ("'1', 'c', 'e', NULL", "data is missing"),
            ("'1', 'c', 'e', '', ''", "idempotency_key has no or more than 255 characters"),
            ("'1', 'c', 'e', '', NULL, now() + interval '31 days'", "deliver_at is more than 30 days ahead"),
        ])
    func refusals(arguments: String, message: String) async throws {
        try await TestDatabase.direct?.withTurn { address in
            let store = try await PostgresStore(address: address, time: TestClock())
            let failure = #expect(throws: PostgresFailure.self) {
                _ = try TestDatabase.run(["SELECT tandem.publish(\(arguments))"], at: address)
            }
            #expect(failure == .refused(state: "22023", message: "tandem.publish: \(message)"))
            try await store.close()
        }
    }
}
