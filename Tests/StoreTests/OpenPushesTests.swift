import HubCore
import HubDelivery
import StoreTesting
import Testing

@testable import HubStorage

/// Pushes that have ended are marked as such, and every open one is still found.
@Suite("Open pushes in PostgreSQL", .enabled(if: TestDatabase.direct != nil)) struct OpenPushesTests {
    private static let count = 2 * Int(OpenPushes.blockSize) + 100

    @Test("an ended block is passed by, and a push of it that is replayed is found")
    func marks() async throws {
        try await TestDatabase.direct?.withTurn { address in
            let clock = TestClock()
            let store = try await PostgresStore(address: address, time: clock)
            let pushes = (0..<Self.count).map { place in
                PushRecord.sample(event: "e", user: "u\(place)", state: .due, message: .sample(event: "e", user: "u\(place)"))
            }
            _ = try await store.commit([EventCommit(.sample("e"), pushes)])
            // Numbers begin with 1: the first block is 1 short, and one push of it stays open.
            let open = pushes[500]
            _ = try await store.lease(pushes)
            for push in pushes where push.user == open.user { _ = try await store.update([ended(push, .retry)]) }
            try await store.update(pushes.filter { $0.user != open.user }.map { ended($0, .failed) })
            #expect(try await store.openDeliveries(limit: 10).map(\.user) == [open.user])

            try await round(store, clock)
            #expect(try ranges(address) == "{}", "numbers of the first look may be taken by a transaction that goes on")
            // The last number of all is not yet sure.
            let some = "{[1024,\(Self.count))}"
            #expect(try await marked(store, clock, address, after: "{}") == some)
            #expect(try await store.openDeliveries(limit: 10).map(\.user) == [open.user])

            let replayed = pushes[1_500]
            _ = try await store.replayDeadLetters(.nids([replayed.nid]), app: "1", now: 2_000, ttl: nil)
            #expect(Set(try await store.openDeliveries(limit: 10).map(\.user)) == [open.user, replayed.user])
            try await store.update([ended(open, .accepted), ended(replayed, .accepted)])
            #expect(try await store.openDeliveries(limit: 10) == [])
            #expect(try await marked(store, clock, address, after: some) == "{[1,\(Self.count))}")

            _ = try await store.commit([EventCommit(.sample("f"), [.sample(event: "f", state: .due)])])
            #expect(try await store.openDeliveries(limit: 10).map(\.event) == ["f"])
            try await store.close()
        }
    }

    @Test("a push that is written but not committed is not passed by")
    func underWay() async throws {
        try await TestDatabase.direct?.withTurn { address in
            let clock = TestClock()
            let store = try await PostgresStore(address: address, time: clock)
            _ = try await store.commit([EventCommit(.sample("a"), [.sample(event: "a", state: .due)])])
            try await store.update([ended(.sample(event: "a"), .accepted)])
            // The push of another program waits for its commit, with a number below the next ones.
            let other = try TestDatabase.connection(at: address)
            try other(
                """
                BEGIN; INSERT INTO tandem.push (day, event, user_id, device, nid, app, state, reason, due_at, attempts)
                VALUES (0, 'a', 'late', 'd1', 'late', '1', 'due', 'absent', 5000, 0)
                """)
            _ = try await store.commit([EventCommit(.sample("b"), [.sample(event: "b", state: .due)])])
            try await store.update([ended(.sample(event: "b"), .accepted)])
            for _ in 0..<3 { try await round(store, clock) }
            #expect(try ranges(address) == "{}")
            try other("COMMIT")
            for _ in 0..<3 { try await round(store, clock) }
            #expect(try await store.openDeliveries(limit: 10).map(\.user) == ["late"])
            #expect(try ranges(address) == "{}", "the block has an open push")
            try await store.close()
        }
    }

    private func round(_ store: PostgresStore, _ clock: TestClock) async throws {
        clock.advance(milliseconds: 10_000)
        _ = try await store.prune(before: 0, limit: 50)
    }

    /// Looks until the marks differ from `known`: a transaction of any database on the server holds them back until it ends.
    private func marked(_ store: PostgresStore, _ clock: TestClock, _ address: String, after known: String) async throws -> String? {
        for _ in 0..<1_200 {
            try await round(store, clock)
            let marks = try ranges(address)
            if marks != known { return marks }
            try await Task.sleep(for: .milliseconds(50))
        }
        return known
    }

    private func ended(_ push: PushRecord, _ state: PushState) -> PushRecord {
        var push = push
        push.state = state
        push.attempts = 1
        push.outcome = "http 503"
        push.attempt = DeliveryAttempt(number: 1, startedAt: 1_000, endedAt: 1_500, answer: "http 503")
        return push
    }

    private func ranges(_ address: String) throws -> String? {
        try TestDatabase.run(["SELECT ended::text AS ended FROM tandem.day"], at: address)[0].first?.text("ended")
    }
}
