import Foundation
import GRDB
import HubCore
import HubDelivery
import StoreTesting
import Synchronization
import Testing

@testable import HubStorage

@Suite("SQLiteStore")
struct SQLiteStoreTests {
    let folder: TemporaryFolder
    let clock = TestClock()

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open(_ name: String = "tandem.db") throws -> SQLiteStore {
        try SQLiteStore(path: folder.file(name), time: clock)
    }

    @Test("waits for the disk at every commit by default, and only then")
    func durability() async throws {
        let full = try await open("full.db").durability()
        #expect(full.synchronous == 2 && full.journalMode == "wal")
        let store = try SQLiteStore(path: folder.file("normal.db"), synchronous: .normal, time: clock)
        #expect(try await store.durability().synchronous == 1)
    }

    @Test("closes in order while a checkpoint is due")
    func closing() async throws {
        for round in 0..<30 {
            let store = try SQLiteStore(path: folder.file("\(round).db"), synchronous: .normal, time: clock)
            // As a copy of a store writes: the closing write is the first that counts these rows.
            try await store.pool.write { db in
                try db.execute(
                    sql: """
                        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
                        INSERT INTO sent_once (app, key, user) SELECT '1', 'k', n FROM numbers
                        """, arguments: [Checkpoints.changesMax])
            }
            try await store.close()
        }
    }

    @Test("finds open deliveries by their index, already in order")
    func plan() async throws {
        let plan = try await open().openDeliveriesPlan()
        #expect(plan.contains { $0.contains("USING INDEX delivery_open") }, "\(plan)")
        #expect(!plan.contains { $0.contains("TEMP B-TREE") }, "\(plan)")
    }

    @Test("makes no table of words while it writes a delivery")
    func instructions() async throws {
        try await open().close()
        let raw = try DatabaseQueue(path: folder.file())
        for sql in [
            "INSERT INTO delivery (event, user, device, nid, app, state, reason, due_at, attempts) VALUES ('', '', '', '', '', '', '', 0, 0)",
            "UPDATE delivery SET state = 'leased', due_at = 1 WHERE event = 'e' AND user = 'u' AND device = 'd'",
        ] {
            let codes = try await raw.read { db in try Row.fetchAll(db, sql: "EXPLAIN " + sql).map { $0["opcode"] as String } }
            #expect(codes.contains("MakeRecord") && !codes.contains("OpenEphemeral"), "\(codes)")
        }
    }

    @Test("finds devices and dead letters by their indexes, however many there are")
    func devicePlans() async throws {
        let store = try open()
        let devices = try await store.devicePlans()
        let indexes = [
            "device": "sqlite_autoindex_device_1 (app=? AND user=? AND id=?)", "user": "sqlite_autoindex_device_1 (app=? AND user=?)",
            "release": "device_token (token=? AND app=? AND provider=?)", "dead": "device_token (token=? AND app=? AND provider=?)",
            "release by the backend": "device_token (token=? AND app=? AND provider=?)",
            "proven": "device_token (token=? AND app=? AND provider=?)", "accepted": "device_token (token=? AND app=? AND provider=?)",
            "prune": "device_refreshed (refreshed_at<?)",
            "roster": "sqlite_autoindex_device_1 (app=? AND user=?)", "waiting": "device_waiting (app=?)",
            "longest waiting": "device_waiting (app=?)",
            "installation": "device_id (app=? AND id=?)",
        ]
        #expect(Set(devices.keys) == Set(indexes.keys))
        for (name, index) in indexes { #expect(devices[name]?.contains { $0.contains(index) } == true, "\(name): \(devices[name] ?? [])") }
        #expect(!devices.values.joined().contains { $0.hasPrefix("SCAN") }, "\(devices)")
        let letters = try await store.deadLetterPlans()
        for (name, index) in [
            ("list", "delivery_failed (app=?"), ("selected", "delivery_failed (app=?"), ("one", "delivery_failed_nid (nid=? AND device=?)"),
            ("notification", "delivery_failed_nid (nid=?)"),
        ] {
            #expect(letters[name]?.contains { $0.contains(index) } == true, "\(name): \(letters[name] ?? [])")
        }
        #expect(!letters.values.joined().contains { $0.hasPrefix("SCAN") || $0.contains("TEMP B-TREE") }, "\(letters)")
    }

    @Test("stamps sessions and participants by the clock it was given, once")
    func stamps() async throws {
        let store = try open()
        let born = clock.wallMilliseconds
        let session = try await store.makeSession()
        clock.advance(milliseconds: 5)
        let ada = try await store.join(session, "ada@example.org")
        clock.advance(milliseconds: 5)
        #expect(try await store.makeSession().createdAt == born)
        #expect(ada.joinedAt == born + 5)
        #expect(try await store.join(session, "ada@example.org").joinedAt == born + 5)
    }

    @Test("everything is there after the file is opened again, closed before or not")
    func reopening() async throws {
        let store = try open()
        let session = try await store.makeSession(joinCode: "CODE")
        let ada = try await store.join(session, "ada@example.org")
        let device = try await store.putDevice(.sample(user: ada.user))
        _ = try await store.commit([.init(.sample("e1"), [.sample(event: "e1", user: ada.user, message: .sample(event: "e1"))])])
        let deliveries = try await store.openDeliveries(limit: 10)
        try await store.close()
        await #expect(throws: StorageError.self) { _ = try await store.sessions(joinCode: "CODE") }
        let again = try open()
        // A second process on the same file, while the first one runs.
        let beside = try open()
        for store in [again, beside] {
            #expect(try await store.sessions(joinCode: "CODE") == [session])
            #expect(try await store.roster(app: "1", session: session.id) == [RosterEntry(participant: ada, devices: [device])])
            #expect(try await store.openDeliveries(limit: 10) == deliveries)
            #expect(deliveries.first?.message?.sequence == 1)
        }
        #expect(try await again.commit([.init(.sample("e2"))]).first?.sequence == 2)
        #expect(try await beside.commit([.init(.sample("e3"))]).first?.sequence == 3)
    }

    @Test("what was committed survives SIGKILL")
    func survivesKill() async throws {
        let path = folder.file()
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let store = try SQLiteStore(path: path, time: TestClock())
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<100 {
                    group.addTask {
                        _ = try await store.commit(
                            [.init(.sample("e\(index)"), [.sample(event: "e\(index)", message: .sample(event: "e\(index)"))])],
                            answers: [.sample("k\(index)")])
                    }
                }
                try await group.waitForAll()
            }
            try await store.update([.sample(event: "e7", state: .accepted)])
            _ = kill(getpid(), SIGKILL)
        }
        let store = try open()
        #expect(try await store.openDeliveries(limit: 1_000).count == 99)
        var sequences: [Int64] = []
        for index in 0..<100 {
            sequences.append(try #require(try await store.event(id: "e\(index)")).sequence)
            #expect(try await store.answer(app: "1", key: "k\(index)", since: 0) == .sample("k\(index)"))
        }
        #expect(sequences.sorted() == Array(1...100))
        #expect(try await store.deliveries(event: "e7").first?.state == .accepted)
    }

    @Test("a file of the first version gets the table of answers, and keeps what it has")
    func migration() async throws {
        let path = folder.file()
        let first = try open()
        _ = try await first.commit([.init(.sample("e1"))])
        try await first.close()
        try await DatabaseQueue(path: path).write { db in
            try db.execute(sql: "DROP TABLE answer; DELETE FROM grdb_migrations WHERE identifier = 'answers'")
        }
        let store = try open()
        #expect(try await store.commit([.init(.sample("e2"))], answers: [.sample("k")]).map(\.sequence) == [2])
        #expect(try await store.answer(app: "1", key: "k", since: 0) == .sample("k"))
    }

    @Test("a text that many deliveries have is written once and goes with its event; one that a single delivery has is in its row")
    func texts() async throws {
        let store = try open()
        func row(_ user: String, title: String = "for all") -> PushRecord {
            var message = PushMessage.sample(event: "e1", user: user)
            message.title = title
            return .sample(event: "e1", user: user, state: .due, message: message)
        }
        _ = try await store.commit([.init(.sample("e1"), (0..<50).map { row("u\($0)") } + [row("x", title: "for one")])])
        let raw = try DatabaseQueue(path: folder.file())
        let own = try await raw.read { db in
            try Row.fetchAll(db, sql: "SELECT DISTINCT message, message_number, (SELECT COUNT(*) FROM message) AS texts FROM delivery")
                .map { row in
                    [row["message"] == "{}" ? "{}" : "text", row["message_number"] == nil ? "" : "numbered", "\(row["texts"] as Int)"]
                }
        }
        #expect(Set(own) == [["{}", "numbered", "1"], ["text", "", "1"]])
        try await store.update(store.openDeliveries(limit: 100).map { .sample(event: "e1", user: $0.user, state: .accepted) })
        #expect(try await store.prune(before: .max, limit: 10) == 1)
        #expect(try await raw.read { db in try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM message") } == 0)
    }

    @Test("deliveries of a file from before texts were shared are read, and go on")
    func textsOfEarlierVersions() async throws {
        let path = folder.file()
        let first = try open()
        let rows = ["a", "b"].map { PushRecord.sample(event: "e1", user: $0, state: .due, message: .sample(event: "e1", user: $0)) }
        _ = try await first.commit([.init(.sample("e1"), rows)])
        let before = try await first.deliveries(event: "e1")
        try await first.close()
        try await DatabaseQueue(path: path).write { db in
            for row in rows {
                try db.execute(
                    sql: "UPDATE delivery SET message = ? WHERE user = ?",
                    arguments: [row.message.map { PushMessageCoding.encode($0).text }, row.user])
            }
            try db.execute(
                sql: """
                    ALTER TABLE delivery DROP COLUMN message_number; DROP TABLE message;
                    DELETE FROM grdb_migrations WHERE identifier = 'messages'
                    """)
        }
        let store = try open()
        #expect(try await store.deliveries(event: "e1") == before)
        #expect(try await store.openDeliveries(limit: 10) == before)
        var failed = before[0]
        (failed.state, failed.outcome, failed.attempt) = (
            .failed, "http 503", DeliveryAttempt(number: 1, startedAt: 1, endedAt: 2, answer: "http 503")
        )
        try await store.update([failed])
        #expect(try await store.deadLetter(app: "1", nid: failed.nid, device: failed.device)?.delivery.message == before[0].message)
        let replay = try await store.replayDeadLetters(.nids([failed.nid]), app: "1", now: 10_000, ttl: 1_000)
        #expect(replay.due.first?.message?.expiresAt == 11_000)
        #expect(try await store.deliveries(event: "e1").first?.message?.expiresAt == 11_000)
    }

    @Test("a delivery that has lost its text is reported, ended and passed over")
    func lostText() async throws {
        let reports = Mutex<[StorageError]>([])
        let store = try SQLiteStore(path: folder.file(), time: clock) { error in reports.withLock { $0.append(error) } }
        _ = try await store.commit([
            .init(.sample("e1"), ["a", "b"].map { .sample(event: "e1", user: $0, message: .sample(event: "e1", user: $0)) })
        ])
        try await DatabaseQueue(path: folder.file()).write { db in try db.execute(sql: "DELETE FROM message") }
        #expect(try await store.openDeliveries(limit: 10) == [])
        #expect(reports.withLock { $0.map(\.code) } == [.unreadableRow, .unreadableRow])
        #expect(try await store.deliveries(event: "e1").map(\.state) == [.failed, .failed])
    }

    @Test("a delivery that cannot be read is reported, ended and passed over")
    func unreadableRows() async throws {
        let reports = Mutex<[StorageError]>([])
        let path = folder.file()
        let store = try SQLiteStore(path: path, time: clock) { error in reports.withLock { $0.append(error) } }
        let devices = ["json", "form", "fine", "object"]
        _ = try await store.commit([
            .init(.sample("e1"), devices.map { .sample(event: "e1", device: $0, message: .sample(event: "e1")) })
        ])
        let raw = try DatabaseQueue(path: path)
        try await raw.write { db in
            for (device, text) in [("json", #"{"title":"secret"#), ("form", #"{"v":9,"title":"secret"}"#), ("object", "7")] {
                try db.execute(sql: "UPDATE delivery SET message = ? WHERE device = ?", arguments: [text, device])
            }
        }
        #expect(try await store.openDeliveries(limit: 1).map(\.device) == ["fine"])
        #expect(reports.withLock { $0.count } == 2)
        #expect(try await store.openDeliveries(limit: 10).map(\.device) == ["fine"])
        #expect(reports.withLock { $0.allSatisfy { $0.code == .unreadableRow && $0.message.contains("nid-e1-u1") } })
        #expect(reports.withLock { $0.count } == 3)
        #expect(reports.withLock { $0.allSatisfy { !$0.message.contains("secret") } })
        let trail = try await store.deliveries(event: "e1")
        #expect(trail.filter { $0.state == .failed }.count == 3 && trail.count == 4)
        #expect(trail.last?.outcome == "unreadable row" && trail.last?.message == nil)
        #expect(try await store.openDeliveries(limit: 10).count == 1)
        #expect(reports.withLock { $0.count } == 3)
        try await raw.write { db in try db.execute(sql: "UPDATE event SET policy = 'guess'") }
        let error = await #expect(throws: StorageError.self) { _ = try await store.event(id: "e1") }
        #expect(error?.code == .unreadableRow)
    }

    @Test("a failing statement's error shows nothing that was to be stored")
    func errorsHideValues() async throws {
        let store = try open()
        _ = try await store.commit([.init(.sample("e1"))])
        var event = EventRecord.sample("e1")
        event.data = "SECRET-PAYLOAD"
        let delivery = PushRecord.sample(event: "SECRET-EVENT", message: .sample(event: "SECRET-MESSAGE"))
        for batch in [[EventCommit(event)], [EventCommit(.sample("e2"), [delivery])]] {
            let error = try #require(await #expect(throws: StorageError.self) { _ = try await store.commit(batch) })
            var dumped = ""
            dump(error, to: &dumped)
            for text in ["\(error)", String(reflecting: error), dumped] {
                #expect(!text.contains("SECRET"), "\(text)")
                #expect(text.contains("constraint"), "\(text)")
            }
        }
    }

    @Test("commits fail by name while the disk takes no more, and go on without a gap when it does again")
    func diskFull() async throws {
        let path = folder.file()
        await #expect(processExitsWith: .success) { [path = path as String] in
            let store = try SQLiteStore(path: path, time: TestClock())
            limitFileSize(bytes: 1_000_000)
            // More than SQLite's page cache: it meets the limit inside its statement, where SQLite ends the transaction
            // of all callers, and not at the commit.
            let large = String(repeating: "x", count: 8_000_000)
            var accepted: [EventRecord] = []
            var failures: [any Error] = []
            for round in 0..<200 where failures.isEmpty {
                await withTaskGroup(of: Result<[EventRecord], any Error>.self) { group in
                    for index in 0..<32 {
                        group.addTask {
                            var event = EventRecord.sample("e-\(round)-\(index)")
                            if round == 3 && index == 9 { event.data = large }
                            do {
                                return .success(try await store.commit([.init(event, [.sample(event: event.id)])]))
                            } catch { return .failure(error) }
                        }
                    }
                    for await result in group {
                        switch result {
                        case .success(let events): accepted += events
                        case .failure(let error): failures.append(error)
                        }
                    }
                }
            }
            precondition(!failures.isEmpty && failures.allSatisfy { ($0 as? StorageError)?.code == .database }, "\(failures)")
            // The cause, for every caller of the transaction, and not its consequence.
            precondition(!failures.contains { "\($0)".contains("aborted") }, "\(failures)")
            limitFileSize(bytes: nil)
            accepted += try await store.commit([.init(.sample("after"))])
            precondition(accepted.map(\.sequence).sorted() == Array(1...Int64(accepted.count)), "\(accepted.count)")
            for event in accepted {
                let stored = try await store.event(id: event.id)
                precondition(stored == event, event.id)
            }
        }
    }

    @Test("prunes ended events to the millisecond, oldest first and in steps, and keeps the channel's count")
    func pruning() async throws {
        let store = try open()
        _ = try await store.commit([
            .init(.sample("open", committedAt: 1), [.sample(event: "open"), .sample(event: "open", device: "x", state: .socket)]),
            .init(.sample("a", committedAt: 2), [.sample(event: "a", state: .accepted)]),
            .init(.sample("b", committedAt: 3)),
            .init(.sample("c", committedAt: 4), [.sample(event: "c", state: .failed)]),
            .init(.sample("edge", committedAt: 10)),
        ])
        #expect(try await store.prune(before: 10, limit: 0) == 0)
        #expect(try await store.prune(before: 10, limit: 2) == 2)
        #expect(try await store.event(id: "b") == nil)
        #expect(try await store.event(id: "c") != nil)
        #expect(try await store.prune(before: 10, limit: .max) == 1)
        #expect(try await store.prune(before: 10, limit: 2) == 0)
        #expect(try await store.deliveries(event: "a") == [])
        #expect(try await store.deliveries(event: "open").count == 2)
        #expect(try await store.event(id: "edge") != nil)
        try await store.update([.sample(event: "open", state: .expired)])
        #expect(try await store.prune(before: 11, limit: 5) == 2)
        #expect(try await store.commit([.init(.sample("d"))]).map(\.sequence) == [6])
    }

    @Test("prunes expired answers to the millisecond, then the oldest beyond the count, in steps")
    func pruningAnswers() async throws {
        let store = try open()
        _ = try await store.commit([], answers: (1...8).map { .sample("k\($0)", answeredAt: Int64($0)) })
        #expect(try await store.pruneAnswers(before: 4, keeping: 5, limit: 0) == (0, 0))
        #expect(try await store.pruneAnswers(before: 4, keeping: 5, limit: 2) == (2, 1))
        #expect(try await store.answer(app: "1", key: "k3", since: 0) == nil)
        #expect(try await store.answer(app: "1", key: "k4", since: 0) != nil)
        #expect(try await store.pruneAnswers(before: 5, keeping: 2, limit: 100) == (1, 2))
        for (key, isKept) in [("k6", false), ("k7", true), ("k8", true)] {
            #expect((try await store.answer(app: "1", key: key, since: 0) != nil) == isKept, "\(key)")
        }
        #expect(try await store.pruneAnswers(before: 5, keeping: 2, limit: 100) == (0, 0))
    }

    @Test("a full write queue is refused by name")
    func queueFull() async throws {
        let limits = GroupCommitLimits(transactionCallsMax: 1, transactionRowsMax: 1, waitingRowsMax: 2)
        let store = try SQLiteStore(path: folder.file(), time: clock, writeLimits: limits)
        let codes = await withTaskGroup(of: StorageError.Code?.self) { group in
            for index in 0..<50 {
                group.addTask {
                    do {
                        _ = try await store.commit([.init(.sample("e\(index)"))])
                        return nil
                    } catch {
                        return (error as? StorageError)?.code ?? .database
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(codes.contains(nil) && codes.contains(.queueFull))
        #expect(codes.allSatisfy { $0 == nil || $0 == .queueFull })
        // Nothing refused was written, nothing accepted was lost.
        #expect(try await store.commit([.init(.sample("last"))]).first?.sequence == Int64(codes.count { $0 == nil } + 1))
    }
}
