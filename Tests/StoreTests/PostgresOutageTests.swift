import HubCore
import HubDelivery
import HubTesting
import StoreTesting
import Testing

@testable import HubStorage

/// PostgreSQL hangs, ends its connections, and comes back.
@Suite("A PostgreSQL that fails", .enabled(if: TestDatabase.direct != nil)) struct PostgresOutageTests {
    private static func withStore(
        isAlone: Bool = true, _ body: @Sendable (PostgresStore, FaultyWay, _ address: String) async throws -> Void
    ) async throws {
        try await TestDatabase.direct?.withTurn { address in
            let way = try FaultyWay(to: TestDatabase.port(of: address))
            defer { way.close() }
            let store = try await PostgresStore(address: TestDatabase.address(address, port: way.port), time: TestClock(), isAlone: isAlone)
            do {
                try await body(store, way, address)
            } catch {
                way.set(.passes)
                try? await store.close()
                throw error
            }
            way.set(.passes)
            try await store.close()
        }
    }

    private static func commit(_ id: String, _ store: PostgresStore) async throws -> EventRecord? {
        let event = EventRecord.sample(id)
        let push = PushRecord.sample(event: id, message: PushMessage.sample(event: id))
        let opening = RecipientOpening(
            snapshot: RecipientSnapshot(users: ["u1", "u2"]), note: RecipientNote(state: nil, choice: .awaited))
        return try await store.commit([EventCommit(event, [push], recipients: opening)]).first
    }

    @Test("a server that hangs is an error within its deadline, then at once, and full work after it")
    func hangs() async throws {
        try await Self.withStore { store, way, _ in
            _ = try await Self.commit("before", store)
            #expect(!store.health.isFailing)
            way.set(.hangs)
            let error = await #expect(throws: StorageError.self) { _ = try await Self.commit("during", store) }
            #expect(error?.code == .unavailable && store.health.isFailing)
            // Nobody waits behind the one who tries.
            await #expect(throws: StorageError.self) { _ = try await store.event(id: "before") }
            way.set(.passes)
            #expect(await eventually { (try? await Self.commit("after", store)) != nil })
            #expect(try await store.event(id: "before") != nil)
            #expect(try await store.event(id: "during") == nil)
            #expect(!store.health.isFailing)
        }
    }

    @Test("a write that the server keeps waiting for two seconds is stored, and readers are answered meanwhile")
    func slow() async throws {
        try await Self.withStore { store, _, address in
            _ = try await Self.commit("before", store)
            let other = try TestDatabase.connection(at: address)
            try other("BEGIN; LOCK TABLE tandem.push IN EXCLUSIVE MODE")
            async let during = Self.commit("during", store)
            let began = ContinuousClock.now
            while ContinuousClock.now < began + .seconds(2) {
                #expect(try await store.event(id: "before") != nil)
                try await Task.sleep(for: .milliseconds(50))
            }
            try other("COMMIT")
            #expect(try await during?.id == "during")
            #expect(!store.health.isFailing)
        }
    }

    @Test("a server that takes no writes fails them all, answers readers, and is used again once it does")
    func readOnly() async throws {
        try await Self.withStore { store, way, address in
            _ = try await Self.commit("before", store)
            _ = try TestDatabase.run(["ALTER ROLE tandem SET default_transaction_read_only = on"], at: address)
            way.set(.ends)
            #expect(await eventually { (try? await Self.commit("ended", store)) == nil })
            way.set(.passes)
            let isReadOnly = await eventually {
                do {
                    _ = try await Self.commit("during", store)
                    return false
                } catch {
                    return (error as? StorageError)?.message.contains("takes no writes") == true
                }
            }
            let isFailing = store.health.isFailing
            let isRead = await eventually { (try? await store.event(id: "before")) != nil }
            _ = try TestDatabase.run(
                ["BEGIN READ WRITE", "ALTER ROLE tandem RESET default_transaction_read_only", "COMMIT"], at: address)
            #expect(isReadOnly && isFailing && isRead)
            #expect(await eventually { (try? await Self.commit("after", store)) != nil })
            #expect(!store.health.isFailing)
        }
    }

    @Test("a commit whose answer was lost counts as failed, and everything it wrote is taken back")
    func lostAnswers() async throws {
        try await Self.withStore { store, way, address in
            _ = try await Self.commit("before", store)
            let later = ScheduledPublish(id: "later", app: "1", deliverAt: 10, request: Array("{}".utf8), createdAt: 1)
            try await store.schedule([later], answers: [])
            let push = PushRecord.sample(event: "lost", message: PushMessage.sample(event: "lost"))
            let opening = RecipientOpening(
                snapshot: RecipientSnapshot(users: ["u1", "u2"]), note: RecipientNote(state: nil, choice: .awaited))
            let answer = AnswerRecord(app: "1", key: "key", requestDigest: [1], status: 200, body: [2], answeredAt: 1_000)
            let event = EventCommit(.sample("lost"), [push], recipients: opening, once: OnceKey(key: "once", users: ["u1"]))
            let take = ScheduledTake(id: "later", at: 20, events: ["lost"])
            way.set(.losesCommits)
            let error = await #expect(throws: StorageError.self) {
                _ = try await store.commit([event], answers: [answer], scheduled: [take])
            }
            #expect(error?.code == .unavailable, "\(error?.message ?? "")")
            way.set(.passes)
            let count = "SELECT (SELECT count(*) FROM tandem.event WHERE id = 'lost') AS events"
            #expect(try TestDatabase.run([count], at: address)[0].first?.int("events") == 1, "the server has committed it")
            // The next call asks what became of it.
            #expect(await eventually { (try? await Self.commit("after", store)) != nil })
            #expect(try await store.event(id: "lost") == nil)
            #expect(try await store.answer(app: "1", key: "key", since: 0) == nil)
            #expect(try await store.sentOnce(app: "1", key: "once", users: ["u1"]).isEmpty)
            #expect(try await store.scheduled(app: "1", id: "later")?.state == .waiting)
            let left = try TestDatabase.run(
                ["push", "fanout"].map { "SELECT count(*) AS count FROM tandem.\($0) WHERE event = 'lost'" }, at: address)
            #expect(left.map { $0.first?.int("count") } == [0, 0])
            // Repeated, it is committed like a new one, and no number is missing.
            let stored = try await store.commit([event], answers: [answer], scheduled: [take])
            #expect(stored.map(\.sequence) == [3])
            #expect(try await store.scheduled(app: "1", id: "later")?.state == .published)
        }
    }

    @Test("a commit whose answer was lost is taken back before some of its partitions go to another node")
    func lostAnswerOfAnOwner() async throws {
        try await Self.withStore(isAlone: false) { store, way, address in
            #expect(await eventually { store.node.owned.count == 64 })
            _ = try await Self.commit("before", store)
            way.set(.losesCommits)
            await #expect(throws: StorageError.self) { _ = try await Self.commit("lost", store) }
            way.set(.passes)
            let count = "SELECT count(*) AS events FROM tandem.event WHERE id = 'lost'"
            #expect(try TestDatabase.run([count], at: address)[0].first?.int("events") == 1, "the server has committed it")
            // The first node writes nothing meanwhile.
            let other = try await PostgresStore(address: address, time: TestClock(), isAlone: false)
            #expect(await eventually { store.node.owned.count == 32 && other.node.owned.count == 32 })
            #expect(try TestDatabase.run([count], at: address)[0].first?.int("events") == 0)
            try await other.close()
        }
    }

    @Test("what was answered is stored, and what failed leaves nothing, wherever a connection ends")
    func ends() async throws {
        try await Self.withStore { store, way, address in
            let told = Guarded<[String]>([])
            let failed = Guarded<[String]>([])
            let isOver = Guarded(false)
            await withTaskGroup(of: Void.self) { group in
                for writer in 0..<4 {
                    group.addTask {
                        var number = 0
                        while !isOver.withLock({ $0 }) {
                            let id = "e-\(writer)-\(number)"
                            number += 1
                            do {
                                _ = try await Self.commit(id, store)
                                told.withLock { $0.append(id) }
                            } catch {
                                failed.withLock { $0.append(id) }
                                try? await Task.sleep(for: .milliseconds(5))
                            }
                        }
                    }
                }
                var random = SeededRandom(state: 7)
                for round in 0..<400 {
                    let (answered, refused) = (told.withLock { $0.count }, failed.withLock { $0.count })
                    if round > 40, refused > 10 { break }
                    // However slow the machine is: the connections are there again, and something is under way.
                    guard await eventually({ told.withLock { $0.count } > answered }) else { break }
                    try? await Task.sleep(for: .milliseconds(Int.random(in: 0...100, using: &random)))
                    way.set(.ends)
                    _ = await eventually(within: .seconds(1)) { failed.withLock { $0.count } > refused }
                    way.set(.passes)
                }
                isOver.withLock { $0 = true }
            }
            // The next write settles what has no answer yet.
            #expect(await eventually { (try? await Self.commit("last", store)) != nil })
            let stored = Set(try TestDatabase.run(["SELECT id FROM tandem.event"], at: address)[0].map { $0.text("id") })
            let (answered, refused) = (told.withLock { $0 }, failed.withLock { $0 })
            #expect(answered.count > 40 && refused.count > 10, "\(answered.count) answered, \(refused.count) failed")
            #expect(answered.filter { !stored.contains($0) } == [])
            #expect(refused.filter(stored.contains) == [])
            let rows = try TestDatabase.run(
                [
                    "SELECT count(*) AS count FROM tandem.push WHERE event NOT IN (SELECT id FROM tandem.event)",
                    "SELECT count(*) AS count, max(sequence) AS last FROM tandem.event",
                ], at: address)
            #expect(rows[0].first?.int("count") == 0)
            #expect(rows[1].first?.int("count") == rows[1].first?.int("last"), "sequences have no gaps")
        }
    }

    @Test("a push that was leased and not answered reads as leased after the process, and is sent again")
    func leases() async throws {
        try await Self.withStore { store, way, address in
            _ = try await Self.commit("e", store)
            let due = try await store.openDeliveries(limit: 10)
            #expect(try await store.lease(due).count == 1)
            way.set(.ends)
            // Waits until the first one's partitions are free.
            let next = try await PostgresStore(address: address, time: TestClock())
            let again = try await next.openDeliveries(limit: 10)
            #expect(again.map(\.state) == [.leased])
            try await next.close()
        }
    }
}
