import HubDelivery
import HubTesting
import Logging
import OutboxTesting
import Testing

@testable import HubServer

@Suite("Retention")
struct RetentionTests {
    private func answer(_ key: String, at milliseconds: Int64) -> AnswerRecord {
        AnswerRecord(app: "1", key: key, requestDigest: [1], status: 200, body: Array("{}".utf8), answeredAt: milliseconds)
    }

    private func retention(_ stage: TestStore, newest: Int64? = nil) -> Retention {
        Retention(
            store: stage.store, directory: stage.store, clock: RetentionClock(time: stage.clock, newest: newest),
            logger: Logger(label: "test"))
    }

    @Test("forgets answers after a day, events after a month, and more of both than one step takes")
    func ages() async throws {
        let stage = try TestStore()
        let (store, clock) = (stage.store, stage.clock)
        let count = 2 * Retention.answersStepMax + 1
        let born = clock.wallMilliseconds
        let events = (0..<count).map { index in
            EventRecord(
                id: "e\(index)", app: "1", channel: "c", name: "n", data: "d", policy: .critical, committedAt: born, expiresAt: born)
        }
        _ = try await store.commit(events.map { EventCommit($0) }, answers: (0..<count).map { answer("k\($0)", at: born) })
        let open = try await stage.commitPush(event: "open")
        let retention = retention(stage)
        clock.advance(milliseconds: AnswerRecord.lifeMilliseconds)
        await retention.forget()
        #expect(try await store.answer(app: "1", key: "k\(count - 1)", since: 0) != nil)
        clock.advance(milliseconds: 1)
        await retention.forget()
        for index in [0, Retention.answersStepMax, count - 1] {
            #expect(try await store.answer(app: "1", key: "k\(index)", since: 0) == nil)
            #expect(try await store.event(id: "e\(index)") != nil)
        }
        clock.advance(milliseconds: Retention.eventLifeMilliseconds - AnswerRecord.lifeMilliseconds)
        await retention.forget()
        for index in [0, Retention.answersStepMax, count - 1] { #expect(try await store.event(id: "e\(index)") == nil) }
        // An event with a waiting push stays, however old.
        #expect(try await store.deliveries(event: "open").map(\.nid) == [open.nid])
    }

    @Test("keeps the youngest answers when there are too many")
    func count() async throws {
        let stage = try TestStore()
        let now = stage.clock.wallMilliseconds
        _ = try await stage.store.commit([], answers: (0..<10).map { answer("k\($0)", at: now + Int64($0)) })
        await retention(stage).forget(answersMax: 3)
        for index in 0..<10 {
            #expect((try await stage.store.answer(app: "1", key: "k\(index)", since: 0) != nil) == (index >= 7), "k\(index)")
        }
    }

    private static let (hour, day): (Int64, Int64) = (3_600_000, 86_400_000)

    /// Stores an event, an answer and a device of the same age.
    private func store(_ name: String, in stage: TestStore) async throws {
        let now = stage.clock.wallMilliseconds
        let event = EventRecord(id: name, app: "1", channel: "c", name: "n", data: "d", policy: .critical, committedAt: now, expiresAt: now)
        _ = try await stage.store.commit([EventCommit(event)], answers: [answer(name, at: now)])
        try await stage.device(user: name, id: name, token: "token-\(name)")
    }

    private func left(_ name: String, in stage: TestStore) async throws -> [Bool] {
        [
            try await stage.store.answer(app: "1", key: name, since: 0) != nil, try await stage.store.event(id: name) != nil,
            try await stage.store.device(app: "1", user: name, id: name) != nil,
        ]
    }

    @Test(
        "a clock that is set forward makes nothing old, and what is old by the time that passed goes",
        arguments: [3 * hour, 31 * day, 400 * day])
    func setForward(step: Int64) async throws {
        let stage = try TestStore()
        let retention = retention(stage)
        try await store("before", in: stage)
        stage.clock.advance(milliseconds: Self.hour)
        await retention.forget()
        stage.clock.setWall(by: step)
        await retention.forget()
        try await store("behind", in: stage)
        stage.clock.advance(milliseconds: 22 * Self.hour)
        await retention.forget()
        for name in ["before", "behind"] { #expect(try await left(name, in: stage) == [true, true, true], "\(name)") }
        for (days, kept) in [(2, [false, true, true]), (31, [false, false, true]), (272, [false, false, false])] as [(Int64, [Bool])] {
            stage.clock.advance(milliseconds: days * Self.day - stage.elapsed)
            await retention.forget()
            #expect(try await left("before", in: stage) == kept, "\(days) days")
            #expect(try await left("behind", in: stage) == kept, "\(days) days")
        }
    }

    @Test(
        "a clock that is set back makes nothing old, also when it is set right again, and retention goes on",
        arguments: [2 * hour, 40 * day])
    func setBack(step: Int64) async throws {
        let stage = try TestStore()
        let retention = retention(stage)
        try await store("before", in: stage)
        stage.clock.setWall(by: -step)
        await retention.forget()
        try await store("meanwhile", in: stage)
        stage.clock.advance(milliseconds: Self.hour)
        await retention.forget()
        stage.clock.setWall(by: step)
        stage.clock.advance(milliseconds: 22 * Self.hour)
        await retention.forget()
        for name in ["before", "meanwhile"] { #expect(try await left(name, in: stage) == [true, true, true], "\(name)") }
        stage.clock.advance(milliseconds: 31 * Self.day)
        await retention.forget()
        for name in ["before", "meanwhile"] { #expect(try await left(name, in: stage) == [false, false, true], "\(name)") }
    }

    @Test("a date that is wrong at the start deletes nothing, also when it is set right an hour later", arguments: [31 * day, -31 * day])
    func wrongAtTheStart(error: Int64) async throws {
        let stage = try TestStore()
        try await store("before", in: stage)
        let newest = try #require(try await stage.store.newestTime())
        #expect(newest == stage.clock.wallMilliseconds)
        #expect(RetentionClock.doubt(newest: newest, now: newest + Self.hour) == nil)
        stage.clock.setWall(by: error)
        let doubt = RetentionClock.doubt(newest: newest, now: stage.clock.wallMilliseconds)
        #expect(doubt?.contains("31 days") == true && doubt?.contains(error > 0 ? "ahead" : "behind") == true)
        let retention = retention(stage, newest: newest)
        await retention.forget()
        stage.clock.advance(milliseconds: Self.hour)
        await retention.forget()
        stage.clock.setWall(by: -error)
        await retention.forget()
        #expect(try await left("before", in: stage) == [true, true, true])
        stage.clock.advance(milliseconds: 32 * Self.day)
        await retention.forget()
        #expect(try await left("before", in: stage) == [false, false, true])
    }

    @Test("more steps than are told apart count together")
    func manySteps() {
        let clock = ManualClock()
        let ages = RetentionClock(time: clock, newest: nil)
        let slowest = clock.wallMilliseconds
        for _ in 0..<2 * RetentionClock.stepsMax {
            _ = ages.cutoff(life: 0)
            clock.setWall(by: Self.hour)
        }
        #expect(ages.cutoff(life: Self.day) == slowest - Self.day)
        clock.advance(milliseconds: Self.day + 1)
        #expect(ages.cutoff(life: Self.day) == clock.wallMilliseconds - Self.day)
    }
}
