import HubCore
import HubDefinitions
import HubDelivery
import HubTesting
import StoreTesting
import Testing

@testable import HubStorage

/// A store is copied into an empty one of the other kind, whole or not at all.
@Suite("A copy of a store", .enabled(if: TestDatabase.direct != nil)) struct StoreCopyTests {
    private typealias Store = StoreContract.Store

    private func copy(_ direction: StoreCopy.Direction, _ file: String, _ address: String) async throws -> [StoreCopy.Part] {
        try await StoreCopy.run(direction, sqlite: file, postgres: address, time: TestClock())
    }

    private func with<Value>(_ file: String, _ body: (SQLiteStore) async throws -> Value) async throws -> Value {
        let store = try SQLiteStore(path: file, time: TestClock())
        let value = try await body(store)
        try await store.close()
        return value
    }

    @Test("what each rule of the contract leaves is copied there and back", arguments: StoreContract.all)
    func rules(rule: StoreContract) async throws {
        try await TestDatabase.direct?.withTurn { address in
            let folder = try TemporaryFolder()
            try await with(folder.file("a.db")) { try await rule.check($0) }
            let there = try await copy(.toPostgres, folder.file("a.db"), address)
            let back = try await copy(.toSQLite, folder.file("b.db"), address)
            #expect(there == back && there.map(\.kind) == CopyKind.allCases.map(\.rawValue))
        }
    }

    /// Something of every kind, and what a hub asks about it.
    private func fill(_ store: Store) async throws {
        _ = try await store.putApp(AppRecord(id: "7", keys: [AppRecord.Key(key: "k", secret: "s")], createdAt: 5))
        let session = try await store.makeSession("s", joinCode: "CODE")
        for person in 0..<3 { _ = try await store.join(session, "p\(person)@example.com") }
        _ = try await store.putDevice(.sample(user: "u1"))
        let later = ScheduledPublish(id: "later", app: "1", deliverAt: 10, request: Array("{}".utf8), createdAt: 1)
        try await store.schedule([later], answers: [])
        let opening = RecipientOpening(
            snapshot: RecipientSnapshot(users: ["u1", "u2", "u3"]), note: RecipientNote(state: nil, choice: .awaited))
        for id in ["e1", "e2"] {
            let pushes = ["u1", "u2"].map {
                PushRecord.sample(event: id, user: $0, state: .due, message: .sample(event: id, user: $0))
            }
            let answer = AnswerRecord(app: "1", key: "key-\(id)", requestDigest: [1], status: 200, body: [2], answeredAt: 1_000)
            _ = try await store.commit(
                [EventCommit(.sample(id), pushes, recipients: opening, once: OnceKey(key: id, users: ["u1"]))], answers: [answer],
                scheduled: [])
        }
        var failed = try #require(try await store.deliveries(event: "e1").first { $0.user == "u1" })
        (failed.state, failed.outcome, failed.attempts) = (.failed, "UNREGISTERED", 2)
        failed.attempt = DeliveryAttempt(number: 2, startedAt: 1_900, endedAt: 2_000, answer: "UNREGISTERED")
        try await store.update([failed])
        let receipt = RecipientSettlement(event: "e2", confirmed: [.init(recipient: 1, at: 3_400)], pushed: [0])
        try await store.settle([receipt])
        try await store.settle([RecipientSettlement(event: "e1", isClosed: true)])
        _ = try await store.updateWebhooks(adding: [.sample([1, 0, 255])], removing: [])
        try await store.markAttendance(at: 77)
    }

    private struct Answers: Equatable {
        var open: [PushRecord]
        var dead: [String]
        var attempts: [String]
        var awaited: [OpenRecipients]
        var trail: [PushRecord]
        var session: Session?
        var participants: [Participant]
        var devices: [Device]
        var answer: AnswerRecord?
        var once: Set<String>
        var webhooks: [WebhookBatch]
        var scheduled: [ScheduledPublish]
        var mark: Int64?
        var apps: [AppRecord]
    }

    private func answers(_ store: Store) async throws -> Answers {
        let dead = try await store.deadLetter(app: "1", nid: "nid-e1-u1", device: "d1")
        return Answers(
            open: try await store.openDeliveries(limit: 10).sorted { $0.nid < $1.nid },
            dead: try await store.deadLetters(app: "1", reason: nil, after: nil, limit: 10).map(\.delivery.nid),
            attempts: dead?.attempts.map(\.answer) ?? [], awaited: try await store.openFanouts(after: 0, limit: 10),
            trail: try await store.deliveries(event: "e1"), session: try await store.session(app: "1", id: "s"),
            participants: try await store.participants(app: "1", session: "s"), devices: try await store.devices(app: "1", user: "u1"),
            answer: try await store.answer(app: "1", key: "key-e2", since: 0),
            once: try await store.sentOnce(app: "1", key: "e1", users: ["u1", "u2"]),
            webhooks: try await store.webhooks(after: 0, limit: 9).map(\.batch),
            scheduled: try await store.scheduled(app: "1", after: nil, limit: 9), mark: try await store.lastAttendance(),
            apps: try await store.apps(changedAfter: 0))
    }

    @Test("a hub finds in the copy what the other store had, and goes on with its numbers")
    func readers() async throws {
        try await TestDatabase.direct?.withTurn { address in
            let folder = try TemporaryFolder()
            let before = try await with(folder.file("a.db")) { store in
                try await fill(store)
                return try await answers(store)
            }
            #expect(
                before.open.count == 3 && before.dead == ["nid-e1-u1"] && before.attempts == ["UNREGISTERED"] && before.awaited.count == 1)
            _ = try await copy(.toPostgres, folder.file("a.db"), address)
            let postgres = try await PostgresStore(address: address, time: TestClock())
            #expect(try await answers(postgres) == before)
            _ = try await postgres.join(try await postgres.makeSession("s", joinCode: "CODE"), "new@example.com")
            #expect(try await postgres.commit([EventCommit(.sample("e3"))]).map(\.sequence) == [3])
            let replayed = try await postgres.replayDeadLetters(.nids(["nid-e1-u1"]), app: "1", now: 3_000, ttl: nil)
            #expect(replayed.due.map(\.user) == ["u1"])
            let numbers = try await postgres.participants(app: "1", session: "s").map(\.number)
            #expect(Set(numbers).count == 4)
            try await postgres.close()
            _ = try await copy(.toSQLite, folder.file("b.db"), address)
            try await with(folder.file("b.db")) { (store: SQLiteStore) async throws -> Void in
                #expect(try await store.participants(app: "1", session: "s").map(\.number) == numbers)
                #expect(try await store.commit([EventCommit(.sample("e4"))]).map(\.sequence) == [4])
                #expect(try await store.openDeliveries(limit: 10).count == 4)
            }
        }
    }

    @Test("a target with rows, a store in use and a store that does not exist are refused, and nothing changes")
    func refusals() async throws {
        try await TestDatabase.direct?.withTurn { address in
            let folder = try TemporaryFolder()
            try await with(folder.file("a.db")) { try await fill($0) }
            let missing = await #expect(throws: StorageError.self) { _ = try await copy(.toPostgres, folder.file("no.db"), address) }
            #expect(missing?.message.contains("no.db") == true)
            do {
                let lock = try StoreLock(store: folder.file("a.db"))
                let used = await #expect(throws: StorageError.self) { _ = try await copy(.toPostgres, folder.file("a.db"), address) }
                #expect(used?.code == .inUse)
                withExtendedLifetime(lock) {}
            }
            _ = try await copy(.toPostgres, folder.file("a.db"), address)
            let full = await #expect(throws: StorageError.self) { _ = try await copy(.toPostgres, folder.file("a.db"), address) }
            #expect(full?.code == .notEmpty)
            let other = await #expect(throws: StorageError.self) { _ = try await copy(.toSQLite, folder.file("a.db"), address) }
            #expect(other?.code == .notEmpty)
        }
    }

    @Test("a copy that ends early leaves an empty target, and the next one is whole")
    func interrupted() async throws {
        try await TestDatabase.direct?.withTurn { address in
            let folder = try TemporaryFolder()
            try await with(folder.file("a.db")) { try await fill($0) }
            let way = try FaultyWay(to: TestDatabase.port(of: address))
            defer { way.close() }
            let through = TestDatabase.address(address, port: way.port)
            await #expect(throws: StorageError.self) {
                _ = try await StoreCopy.run(.toPostgres, sqlite: folder.file("a.db"), postgres: through, time: TestClock()) { progress in
                    if progress.kind == CopyKind.push.rawValue { way.set(.ends) }
                }
            }
            way.set(.passes)
            let count = "SELECT (SELECT count(*) FROM tandem.event) + (SELECT count(*) FROM tandem.session) AS count"
            #expect(try TestDatabase.run([count], at: address)[0].first?.int("count") == 0)
            #expect(try await copy(.toPostgres, folder.file("a.db"), address).first { $0.kind == "event" }?.count == 2)
        }
    }
}
