import HubCore
import HubDelivery
import Testing

extension StoreContract {
    static let deadLetters: [StoreContract] = [
        StoreContract("a replay gives those that say the same more time one by one, and expired ones stand in nobody's way") { store in
            let rows = ["a", "b", "c"].map {
                PushRecord.sample(event: "e1", user: $0, state: .due, message: .sample(event: "e1", user: $0))
            }
            _ = try await store.commit([.init(.sample("e1"), rows)])
            for (index, row) in rows.enumerated() { _ = try await store.fail(row, outcome: "http 503", at: Int64(100 + index)) }
            #expect(try await store.replayDeadLetters(.failed(reason: nil, before: nil), app: "1", now: 61_000, ttl: nil).due == [])
            let longer = try await store.replayDeadLetters(.nids(["nid-e1-b"]), app: "1", now: 61_000, ttl: 5_000)
            #expect(longer.due.map(\.user) == ["b"] && longer.due.first?.message?.expiresAt == 66_000)
            #expect(try await store.deliveries(event: "e1").map { $0.message?.expiresAt } == [61_000, 66_000, 61_000])
            // Again dead, with the time that it was given.
            var again = try #require(longer.due.first)
            again.state = .leased
            _ = try await store.fail(again, outcome: "http 503", at: 61_500)
            let living = try await store.replayDeadLetters(.failed(reason: nil, before: nil), app: "1", now: 62_000, ttl: nil)
            #expect(living.due.map(\.user) == ["b"] && living.due.first?.message?.expiresAt == 66_000)
            #expect(try await store.deliveries(event: "e1").map { $0.message?.nid } == ["nid-e1-a", "nid-e1-b", "nid-e1-c"])
        },
        StoreContract("what has failed is listed, the first failed first, page by page and by reason, until it is pruned") { store in
            try await store.fail("e1", "a", outcome: "UNREGISTERED", at: 300)
            try await store.fail("e2", "b", outcome: "http 503: gave up after 60 min", at: 100)
            try await store.fail("e3", "c", outcome: "http 503", at: 200)
            try await store.fail("e4", "d", outcome: "http 503", at: 50, app: "2")
            _ = try await store.commit([
                .init(.sample("e5", committedAt: 8 * day), [.sample(event: "e5", user: "e", state: .due, message: .sample(event: "e5"))])
            ])
            _ = try await store.putDevice(.sample(user: "a", id: "d1", provider: .apns))

            let all = try await store.deadLetters(app: "1", reason: nil, after: nil, limit: 10)
            #expect(all.map(\.delivery.user) == ["b", "c", "a"] && all.map(\.place.failedAt) == [100, 200, 300])
            #expect(all.allSatisfy { $0.delivery.message == nil } && all.map(\.provider) == [nil, nil, .apns])
            let second = try await store.deadLetters(app: "1", reason: nil, after: all[0].place, limit: 1)
            #expect(second.map(\.delivery.user) == ["c"])
            #expect(try await store.deadLetters(app: "1", reason: "http 503", after: nil, limit: 10).map(\.delivery.user) == ["b", "c"])
            #expect(try await store.deadLetters(app: "1", reason: "http", after: nil, limit: 10) == [])
            #expect(try await store.deadLetters(app: "2", reason: nil, after: nil, limit: 10).map(\.delivery.user) == ["d"])

            let one = try #require(try await store.deadLetter(app: "1", nid: "nid-e1-a", device: "d1"))
            #expect(one.delivery.message?.title == "Hide & Seek 🎯" && one.attempts.map(\.answer) == ["UNREGISTERED"])
            #expect(try await store.deadLetter(app: "2", nid: "nid-e1-a", device: "d1") == nil)
            #expect(try await store.deadLetter(app: "1", nid: "nid-e1-a", device: "d2") == nil)

            try await store.pruneAll(before: 5 * day)
            #expect(try await store.deadLetters(app: "1", reason: nil, after: nil, limit: 10) == [])
            #expect(try await store.openDeliveries(limit: 10).map(\.event) == ["e5"])
        },
        StoreContract("what is replayed is due again, with a fresh count, and can be sent and fail again") { store in
            try await store.fail("e1", "a", outcome: "http 503", at: 2_000)
            let replay = try await store.replayDeadLetters(.nids(["nid-e1-a", "nowhere"]), app: "1", now: 3_000, ttl: nil)
            let due = try #require(replay.due.first)
            #expect(replay.due.count == 1 && replay.expired == [] && due.state == .due && due.attempts == 0 && due.dueAt == 3_000)
            #expect(due.outcome == nil && due.message?.expiresAt == 61_000 && due.message?.sequence == 1)
            #expect(try await store.openDeliveries(limit: 10) == [due])
            #expect(try await store.deadLetters(app: "1", reason: nil, after: nil, limit: 10) == [])
            #expect(try await store.replayDeadLetters(.nids(["nid-e1-a"]), app: "1", now: 3_000, ttl: nil).due == [])
            #expect(try await store.trail(event: "e1")?.recipients.first?.deliveries.first?.attempts == [])

            #expect(try await store.fail(due, outcome: "http 500", at: 4_000).count == 1)
            #expect(try await store.deadLetters(app: "1", reason: "http 500", after: nil, limit: 10).map(\.place.failedAt) == [4_000])
        },
        StoreContract("what has expired is replayed only with more time, and stands in nobody's way") { store in
            try await store.fail("e1", "a", outcome: "http 503", at: 2_000)
            try await store.fail("e2", "b", outcome: "http 503", at: 2_500, lifetime: 1_000_000)
            let named = try await store.replayDeadLetters(.nids(["nid-e1-a"]), app: "1", now: 61_000, ttl: nil)
            #expect(named.due == [] && named.expired.map(\.nid) == ["nid-e1-a"])
            let all = try await store.replayDeadLetters(.failed(reason: "http 503", before: nil), app: "1", now: 61_000, ttl: nil)
            #expect(all.due.map(\.user) == ["b"] && all.expired == [])
            let revived = try await store.replayDeadLetters(.failed(reason: nil, before: 2_001), app: "1", now: 61_000, ttl: 5_000)
            #expect(revived.due.map(\.user) == ["a"] && revived.due.first?.message?.expiresAt == 66_000)
            #expect(try await store.deliveries(event: "e1").first?.message?.expiresAt == 66_000)
        },
        StoreContract("selections keep to their app, reason and time; dismissed ones end as cancelled with their reason") { store in
            try await store.fail("e1", "a", outcome: "UNREGISTERED", at: 100)
            try await store.fail("e2", "b", outcome: "http 503", at: 200)
            try await store.fail("e3", "c", outcome: "http 503", at: 300)
            #expect(try await store.replayDeadLetters(.nids(["nid-e1-a"]), app: "2", now: 1, ttl: nil).due == [])
            #expect(try await store.dismissDeadLetters(.failed(reason: "http 503", before: 300), app: "1") == 1)
            #expect(try await store.dismissDeadLetter(app: "2", nid: "nid-e1-a", device: "d1") == false)
            #expect(try await store.dismissDeadLetter(app: "1", nid: "nid-e1-a", device: "d1"))
            #expect(try await store.dismissDeadLetter(app: "1", nid: "nid-e1-a", device: "d1") == false)
            let row = try await store.deliveries(event: "e1").first
            #expect(row?.state == .cancelled && row?.outcome == "dismissed: UNREGISTERED")
            #expect(try await store.deadLetters(app: "1", reason: nil, after: nil, limit: 10).map(\.delivery.user) == ["c"])
        },
        StoreContract("a once key is spent with its event, by user and for ever, and not at all where the event is not committed") {
            store in
            func commit(_ id: String, _ users: [String], key: String = "welcome", app: String = "1") async throws {
                _ = try await store.commit([.init(.sample(id, app: app), once: OnceKey(key: key, users: users))])
            }
            try await commit("e1", ["ann", "bob"])
            #expect(try await store.sentOnce(app: "1", key: "welcome", users: ["bob", "eve", "ann"]) == ["ann", "bob"])
            await #expect(throws: AlreadySent.self) { try await commit("e2", ["eve", "bob"]) }
            #expect(try await store.event(id: "e2") == nil)
            #expect(try await store.sentOnce(app: "1", key: "welcome", users: ["eve"]) == [])
            try await commit("e3", ["bob"], key: "other")
            try await commit("e4", ["bob"], app: "2")
            try await store.pruneAll(before: .max)
            #expect(try await store.event(id: "e1") == nil)
            #expect(try await store.sentOnce(app: "1", key: "welcome", users: ["bob"]) == ["bob"])
        },
    ]
}

extension DeliveryStore {
    /// Commits a push and lets it fail.
    fileprivate func fail(
        _ event: String, _ user: String, outcome: String, at: Int64, app: String = "1", lifetime: Int64 = 60_000
    ) async throws {
        var message = PushMessage.sample(event: event, user: user)
        message.expiresAt = 1_000 + lifetime
        var delivery = PushRecord.sample(event: event, user: user, state: .due, message: message)
        delivery.app = app
        _ = try await commit([.init(.sample(event, app: app), [delivery])])
        _ = try await fail(delivery, outcome: outcome, at: at)
    }

    fileprivate func fail(_ delivery: PushRecord, outcome: String, at: Int64) async throws -> [PushRecord] {
        var failed = delivery
        failed.state = .failed
        failed.attempts = 1
        failed.outcome = outcome
        failed.attempt = DeliveryAttempt(number: 1, startedAt: at - 10, endedAt: at, answer: outcome)
        try await update([failed])
        return try await deliveries(event: delivery.event)
    }
}
