import HubDelivery
import HubTesting
import Logging
import Testing

@testable import HubServer

@Suite("Retention")
struct RetentionTests {
    private func answer(_ key: String, at milliseconds: Int64) -> AnswerRecord {
        AnswerRecord(app: "1", key: key, requestDigest: [1], status: 200, body: Array("{}".utf8), answeredAt: milliseconds)
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
        let retention = Retention(store: store, directory: store, time: clock, logger: Logger(label: "test"))
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
        // What is still to be sent stays, however old it is.
        #expect(try await store.deliveries(event: "open").map(\.nid) == [open.nid])
    }

    @Test("keeps the youngest answers when there are too many")
    func count() async throws {
        let stage = try TestStore()
        let now = stage.clock.wallMilliseconds
        _ = try await stage.store.commit([], answers: (0..<10).map { answer("k\($0)", at: now + Int64($0)) })
        await Retention(store: stage.store, directory: stage.store, time: stage.clock, logger: Logger(label: "test")).forget(answersMax: 3)
        for index in 0..<10 {
            #expect((try await stage.store.answer(app: "1", key: "k\(index)", since: 0) != nil) == (index >= 7), "k\(index)")
        }
    }
}
