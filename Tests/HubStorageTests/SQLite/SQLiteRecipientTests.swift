import Foundation
import GRDB
import HubCore
import HubDelivery
import HubStorage
import StoreTesting
import Synchronization
import Testing

@Suite("SQLiteStore: fan-outs")
struct SQLiteFanoutTests {
    let folder: TemporaryFolder
    let reports = Reports()

    init() throws {
        folder = try TemporaryFolder()
    }

    final class Reports: Sendable {
        private let kept = Mutex<[StorageError]>([])
        var all: [StorageError] { kept.withLock { $0 } }
        func add(_ error: StorageError) { kept.withLock { $0.append(error) } }
    }

    private func open() throws -> SQLiteStore {
        try SQLiteStore(path: folder.file(), time: TestClock()) { [reports] in reports.add($0) }
    }

    private func raw(_ sql: String, arguments: StatementArguments = []) async throws {
        try await DatabaseQueue(path: folder.file()).write { db in try db.execute(sql: sql, arguments: arguments) }
    }

    private func count(_ table: String) async throws -> Int {
        try await DatabaseQueue(path: folder.file()).read { db in try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM \(table)") ?? -1 }
    }

    @Test("recipients are read as they were committed, also with a NUL character in an id")
    func zeros() async throws {
        let store = try open()
        let users = ["zoe", "ü🎯\u{0}\n"]
        _ = try await store.commit([
            .init(.sample("e1"), recipients: RecipientOpening(snapshot: RecipientSnapshot(users: users), note: .awaited))
        ])
        #expect(try await store.openFanouts(limit: 1).first?.users == users)
    }

    @Test("events with the same recipients share one list, which goes with the last of them")
    func sharing() async throws {
        let store = try open()
        let (small, large) = (RecipientSnapshot(users: ["a", "b"]), RecipientSnapshot(users: (0..<100).map { "u\($0)" }))
        let pushed = RecipientNote(state: .absent, choice: .pushed)
        for index in 0..<6 {
            let opening = RecipientOpening(snapshot: index < 3 ? small : large, note: pushed)
            _ = try await store.commit([
                .init(.sample("e\(index)", app: "\(index % 2)", committedAt: Int64(index)), recipients: opening)
            ])
        }
        #expect(try await count("snapshot") == 2)
        // Only the short list costs a row per user, once.
        #expect(try await count("snapshot_user") == 2)
        #expect(try await store.prune(before: 2, limit: 10) == 2)
        #expect(try await count("snapshot") == 2)
        #expect(try await store.prune(before: 5, limit: 1) == 1)
        #expect(try await count("snapshot") == 1)
        #expect(try await count("snapshot_user") == 0)
        #expect(try await store.prune(before: 100, limit: 10) == 3)
        #expect(try await count("snapshot") == 0)
        #expect(try await count("fanout") == 0)
        _ = try await store.commit([.init(.sample("again"), recipients: RecipientOpening(snapshot: large, note: .awaited))])
        #expect(try await store.openFanouts(limit: 1).first?.users == large.users)
    }

    @Test("a long list that grows at its end costs the people added, and is read and pruned like any other")
    func growth() async throws {
        let store = try open()
        let start = (0..<100).map { "a-user-with-a-long-name-\($0)" }
        let pushed = RecipientNote(state: .absent, choice: .pushed)
        func commit(_ id: String, _ users: [String], at time: Int64) async throws {
            let opening = RecipientOpening(snapshot: RecipientSnapshot(users: users), note: pushed)
            _ = try await store.commit([.init(.sample(id, committedAt: time), recipients: opening)])
        }
        func bytes() async throws -> Int {
            try await DatabaseQueue(path: folder.file()).read { db in
                try Int.fetchOne(db, sql: "SELECT SUM(length(users)) FROM snapshot") ?? 0
            }
        }
        var users = start
        for index in 0..<80 {
            try await commit("e\(index)", users, at: Int64(index))
            users.append("late-\(index)")
        }
        let whole = RecipientSnapshot(users: start).encoded.count
        // At most every 34th list is written whole.
        #expect(try await bytes() < 5 * whole)
        #expect(try await count("snapshot") == 80)
        // Another list of another session in between, and one that lost somebody.
        try await commit("other", start.reversed(), at: 80)
        try await commit("left", Array(users.dropFirst()), at: 81)
        try await commit("again", start, at: 82)
        try await store.close()

        let again = try open()
        for index in [0, 1, 33, 34, 79] {
            let trail = try #require(try await again.trail(event: "e\(index)"))
            #expect(trail.recipients.map(\.user) == start + (0..<index).map { "late-\($0)" })
        }
        #expect(try await again.trail(event: "other")?.recipients.map(\.user) == start.reversed())
        #expect(try await again.trail(event: "left")?.recipients.map(\.user) == Array(users.dropFirst()))
        // A list stays as long as others continue it: "again" has the very first list.
        #expect(try await again.prune(before: 80, limit: 1_000) == 80)
        #expect(try await count("snapshot") == 3)
        #expect(try await again.trail(event: "again")?.recipients.map(\.user) == start)
        #expect(try await again.prune(before: 100, limit: 1_000) == 3)
        #expect(try await count("snapshot") == 0)
    }

    @Test("a list whose beginning was pruned, or whose commit failed, is not continued")
    func growthAfterLoss() async throws {
        let store = try open()
        let users = (0..<100).map { "u\($0)" }
        let pushed = RecipientNote(state: .absent, choice: .pushed)
        func event(_ id: String, _ users: [String]) -> EventCommit {
            .init(.sample(id, committedAt: 1), recipients: RecipientOpening(snapshot: RecipientSnapshot(users: users), note: pushed))
        }
        _ = try await store.commit([.init(.sample("taken", committedAt: 50))])
        await #expect(throws: (any Error).self) { _ = try await store.commit([event("e1", users), .init(.sample("taken"))]) }
        _ = try await store.commit([event("e2", users.reversed()), event("e3", users + ["x"])])
        #expect(try await store.trail(event: "e3")?.recipients.map(\.user) == users + ["x"])
        #expect(try await store.prune(before: 10, limit: 10) == 2)
        _ = try await store.commit([event("e4", users + ["x", "y"]), event("e5", users + ["x", "y", "z"])])
        #expect(try await store.trail(event: "e4")?.recipients.map(\.user) == users + ["x", "y"])
        // Damage to a beginning is damage to what continues it.
        try await raw("UPDATE snapshot SET users = x'0161' WHERE base IS NULL")
        let fresh = try open()
        for id in ["e4", "e5"] { #expect(try await fresh.trail(event: id)?.recipients == []) }
        try await raw("UPDATE snapshot SET base = number")
        #expect(try await fresh.trail(event: "e5")?.recipients == [])
        #expect(try await open().trail(event: "e5")?.recipients == [])
        #expect(reports.all.count >= 3)
    }

    @Test("answers from an index whatever is asked of the fan-outs")
    func plans() async throws {
        let plans = try await open().fanoutPlans()
        for (name, index) in [
            ("open", "fanout_open"), ("missed", "fanout_living"), ("own", "fanout_snapshot"), ("large", "fanout_large"),
            ("due", "scheduled_due"), ("next", "scheduled_due"), ("scheduled", "scheduled_app"),
        ] {
            let plan = try #require(plans[name])
            #expect(plan.contains { $0.contains("INDEX \(index)") }, "\(name): \(plan)")
            #expect(name == "own" || !plan.contains { $0.contains("TEMP B-TREE") }, "\(name): \(plan)")
            #expect(!plan.contains { $0.hasPrefix("SCAN") && !$0.contains("INDEX") }, "\(name): \(plan)")
        }
    }

    @Test("a file of an older version gets the tables, and its events have a trail")
    func migration() async throws {
        let first = try open()
        _ = try await first.commit([.init(.sample("e1"), [.sample(event: "e1")])])
        try await first.close()
        try await raw(
            """
            DROP TABLE fanout; DROP TABLE snapshot; DROP TABLE snapshot_user; DROP TABLE scheduled;
            ALTER TABLE delivery DROP COLUMN attempts_log;
            DELETE FROM grdb_migrations WHERE identifier IN ('fanouts', 'scheduled', 'attempts', 'lists');
            """)
        let store = try open()
        _ = try await store.commit([
            .init(.sample("e2"), recipients: RecipientOpening(snapshot: RecipientSnapshot(users: ["u1"]), note: .awaited))
        ])
        #expect(try await store.trail(event: "e1")?.recipients.first?.deliveries.count == 1)
        #expect(try await store.history(app: "1", channel: "presence-game-7", after: 0, limit: 5).map(\.id) == ["e1", "e2"])
        #expect(try await store.events(app: "1", user: "u1", after: 0, limit: 5).entries.map(\.event.id) == ["e2"])
    }

    @Test(
        "recipients whose state cannot be read are told again rather than missed, and the row is mended by the next settlement",
        arguments: ["confirmed = x'FFFF'", "pushed = x'00000000'", "received = x'01'", "notes = x'07'", "notes = x''"])
    func unreadableBits(assignment: String) async throws {
        let store = try open()
        let opening = RecipientOpening(snapshot: RecipientSnapshot(users: ["a", "b", "c"]), note: .awaited)
        _ = try await store.commit([.init(.sample("e"), recipients: opening)])
        try await store.settle([RecipientSettlement(event: "e", confirmed: [.init(recipient: 0, at: 1_500)], pushed: [1])])
        try await raw("UPDATE fanout SET \(assignment)")
        let open = try await store.openFanouts(limit: 10)
        #expect(open.first?.unsettled.contains(2) == true && open.count == 1)
        #expect(reports.all.map(\.code) == [.unreadableRow])
        #expect(try await store.trail(event: "e")?.recipients.count == 3)
        let missed = try await store.missed(app: "1", channel: "presence-game-7", user: "c", now: 0, limit: 5)
        #expect(missed.map(\.recipient) == [2])
        try await store.settle([RecipientSettlement(event: "e", confirmed: [2], at: 2_000)])
        #expect(try await store.openFanouts(limit: 10).first?.unsettled.contains(2) == false)
        if !assignment.hasPrefix("notes") {
            let count = reports.all.count
            #expect(try await store.trail(event: "e")?.recipients.last?.confirmedAt == 2_000)
            #expect(reports.all.count == count)
        }
    }

    @Test(
        "a list of recipients that cannot be read is reported once and its fan-out closed",
        arguments: [
            "UPDATE snapshot SET users = x'05'", "UPDATE snapshot SET key = CAST(number AS BLOB)",
            "UPDATE snapshot SET users = CAST(replace(CAST(users AS TEXT), 'u', 'v') AS BLOB)",
            "UPDATE fanout SET count = 4", "UPDATE fanout SET count = -1", "UPDATE fanout SET count = \(Int64.max)",
        ])
    func unreadableLists(sql: String) async throws {
        for size in [3, 100] {
            let store = try open()
            let snapshot = RecipientSnapshot(users: (0..<size).map { "u\(size)-\($0)" })
            let (bad, good) = ("bad\(size)", "good\(size)")
            _ = try await store.commit([
                .init(
                    .sample(bad), [.sample(event: bad, user: "u\(size)-1")],
                    recipients: RecipientOpening(snapshot: snapshot, note: .awaited))
            ])
            try await raw(sql)
            let other = RecipientSnapshot(users: ["u\(size)-1", "x"])
            _ = try await store.commit([.init(.sample(good), recipients: RecipientOpening(snapshot: other, note: .awaited))])
            #expect(try await store.openFanouts(limit: 10).map(\.event.id) == [good])
            #expect(try await store.openFanouts(limit: 10).map(\.event.id) == [good])
            // The trail still has the recipients of the delivery rows.
            #expect(try await store.trail(event: bad)?.recipients.map(\.user) == ["u\(size)-1"])
            for _ in 0..<3 {
                let missed = try await store.missed(app: "1", channel: "presence-game-7", user: "u\(size)-1", now: 0, limit: 5)
                #expect(missed.last?.event.id == good && (missed.count == 1 || sql.contains("count")))
            }
            let events = try await store.events(app: "1", user: "u\(size)-1", after: 0, limit: 5)
            #expect(events.entries.map(\.event.id).contains(good))
            try await store.settle([RecipientSettlement(event: good, isClosed: true)])
            #expect(reports.all.count { $0.message.contains("list") } >= 1)
            #expect(!reports.all.contains { $0.message.contains("u\(size)-1") })
            _ = try await store.escalate([], [RecipientSettlement(event: bad, confirmed: [0], at: 1)])
            try await store.update([.sample(event: bad, user: "u\(size)-1", state: .failed)])
            #expect(try await store.prune(before: 10_000, limit: 10) == 2)
            try await store.close()
        }
    }

    @Test("an event that cannot be read does not keep the others from being read")
    func unreadableEvents() async throws {
        let store = try open()
        let opening = RecipientOpening(snapshot: RecipientSnapshot(users: ["a"]), note: .awaited)
        for index in 0..<3 { _ = try await store.commit([.init(.sample("e\(index)"), recipients: opening)]) }
        try await raw("UPDATE event SET policy = 'guess' WHERE id = 'e1'")
        #expect(try await store.history(app: "1", channel: "presence-game-7", after: 0, limit: 5).map(\.id) == ["e0", "e2"])
        #expect(try await store.missed(app: "1", channel: "presence-game-7", user: "a", now: 0, limit: 5).map(\.event.id) == ["e0", "e2"])
        #expect(try await store.events(app: "1", user: "a", after: 0, limit: 5).entries.map(\.event.id) == ["e0", "e2"])
        #expect(reports.all.count == 3)
        #expect(try await store.openFanouts(limit: 5).map(\.event.id) == ["e0", "e2"])
        #expect(try await store.openFanouts(limit: 5).map(\.event.id) == ["e0", "e2"])
        #expect(reports.all.count == 4)
    }

    @Test("attempts that cannot be read are left out and reported")
    func unreadableAttempts() async throws {
        let store = try open()
        _ = try await store.commit([.init(.sample("e"), [.sample(event: "e")])])
        try await raw("UPDATE delivery SET attempts_log = ?", arguments: ["x\n1 2 3 ok\n9 9\n"])
        let attempts = try await store.trail(event: "e")?.recipients.first?.deliveries.first?.attempts
        #expect(attempts == [DeliveryAttempt(number: 1, startedAt: 2, endedAt: 3, answer: "ok")])
        #expect(reports.all.map(\.code) == [.unreadableRow])
    }

    @Test("SIGKILL in the middle of escalations and takes leaves none of them half done")
    func survivesKill() async throws {
        let path = folder.file()
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let store = try SQLiteStore(path: path, time: TestClock())
            let users = (0..<80).map { "u\($0)" }
            let opening = RecipientOpening(snapshot: RecipientSnapshot(users: users), note: .awaited)
            try await store.schedule((0..<200).map { .sample("s\($0)") }, answers: [])
            let done = Counter()
            await withTaskGroup(of: Void.self) { group in
                for index in 0..<200 {
                    group.addTask {
                        do {
                            let id = "e\(index)"
                            _ = try await store.commit(
                                [.init(.sample(id), recipients: opening)], answers: [],
                                scheduled: [ScheduledTake(id: "s\(index)", at: 1, events: [id])])
                            let pushed = Array(stride(from: index % 7, to: users.count, by: 7))
                            _ = try await store.escalate(
                                pushed.map { .sample(event: id, user: users[$0], state: .due) },
                                [RecipientSettlement(event: id, pushed: pushed, isClosed: index.isMultiple(of: 2))])
                        } catch { fatalError("\(error)") }
                        if done.next() == 100 { _ = kill(getpid(), SIGKILL) }
                    }
                }
            }
        }
        let store = try open()
        var (escalated, taken) = (0, 0)
        for index in 0..<200 {
            let scheduled = try #require(try await store.scheduled(app: "1", id: "s\(index)"))
            let trail = try await store.trail(event: "e\(index)")
            #expect((trail != nil) == (scheduled.state == .published), "s\(index)")
            guard let trail else { continue }
            taken += 1
            #expect(trail.recipientCount == 80)
            for recipient in trail.recipients { #expect(recipient.isPushed == !recipient.deliveries.isEmpty, "\(recipient)") }
            let count = trail.recipients.count { $0.isPushed }
            #expect(count == 0 && trail.isOpen || count >= 11 && trail.isOpen == !index.isMultiple(of: 2))
            if count > 0 { escalated += 1 }
        }
        #expect(escalated >= 100 && taken >= escalated)
        #expect(reports.all == [])
    }

    @Test("a page of a user's events looks at a bounded number of others', and the next one goes on behind them")
    func boundedPages() async throws {
        let store = try open()
        let strangers = (0..<70).map { "s\($0)" }
        var batch: [EventCommit] = []
        for index in 0..<5_100 {
            let isOwn = index == 3 || index == 5_090
            let users = isOwn ? strangers + ["a"] : strangers
            batch.append(
                .init(.sample("e\(index)"), recipients: RecipientOpening(snapshot: RecipientSnapshot(users: users), note: .awaited)))
        }
        _ = try await store.commit(batch)
        let first = try await store.events(app: "1", user: "a", after: 0, limit: 10)
        #expect(first.entries.map(\.event.id) == ["e3"] && first.isMore)
        let second = try await store.events(app: "1", user: "a", after: first.position, limit: 10)
        #expect(second.entries.map(\.event.id) == ["e5090"] && !second.isMore)

        // Lists that are not in memory are read in bounded numbers, too.
        _ = try await store.commit(
            (0..<100).map { list in
                .init(
                    .sample("l\(list)", app: "2"),
                    recipients: RecipientOpening(snapshot: RecipientSnapshot(users: strangers + ["a", "l\(list)"]), note: .awaited))
            })
        var (found, pages) = (0, 0)
        var page = UserEvents(entries: [], position: 0, isMore: true)
        while page.isMore, pages < 50 {
            page = try await store.events(app: "2", user: "a", after: page.position, limit: 100)
            found += page.entries.count
            pages += 1
        }
        #expect(found == 100 && (2...10).contains(pages))
    }
}

private final class Counter: Sendable {
    private let count = Mutex(0)

    func next() -> Int {
        count.withLock {
            $0 += 1
            return $0
        }
    }
}
