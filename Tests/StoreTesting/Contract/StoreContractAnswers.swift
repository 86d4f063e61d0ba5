import HubCore
import HubDelivery
import Testing

extension StoreContract {
    static let answers: [StoreContract] = [
        StoreContract("an answer is read as it was committed, by app and key") { store in
            var answer = AnswerRecord.sample("k", body: Array("{\"a\":\"\u{0}ä\"}".utf8) + [0xFF])
            answer.status = 202
            answer.contentType = "text/plain"
            #expect(try await store.commit([], answers: [answer]) == [])
            #expect(try await store.answer(app: "1", key: "k", since: 0) == answer)
            #expect(try await store.answer(app: "2", key: "k", since: 0) == nil)
            #expect(try await store.answer(app: "1", key: "K", since: 0) == nil)
            let other = AnswerRecord.sample("k", app: "2", body: [])
            _ = try await store.commit([], answers: [other])
            #expect(try await store.answer(app: "2", key: "k", since: 0) == other)
            #expect(try await store.answer(app: "1", key: "k", since: 0) == answer)
        },
        StoreContract("an answer is not given out after its time, and a new one takes its place") { store in
            _ = try await store.commit([], answers: [.sample("k", answeredAt: 1_000)])
            #expect(try await store.answer(app: "1", key: "k", since: 1_000) != nil)
            #expect(try await store.answer(app: "1", key: "k", since: 1_001) == nil)
            let next = AnswerRecord.sample("k", body: Array("{\"n\":2}".utf8), answeredAt: 5_000)
            _ = try await store.commit([], answers: [next])
            #expect(try await store.answer(app: "1", key: "k", since: 0) == next)
            #expect(try await store.pruneAnswers(before: 4_000, keeping: 10, limit: 10) == (0, 0))
        },
        StoreContract("answers and events are committed together or not at all") { store in
            let committed = try await store.commit([.init(.sample("e1"))], answers: [.sample("k1"), .sample("k2")])
            #expect(committed.map(\.sequence) == [1])
            #expect(try await store.answer(app: "1", key: "k2", since: 0) != nil)
            await #expect(throws: (any Error).self) {
                _ = try await store.commit([.init(.sample("e2")), .init(.sample("e1"))], answers: [.sample("k3")])
            }
            #expect(try await store.event(id: "e2") == nil)
            #expect(try await store.answer(app: "1", key: "k3", since: 0) == nil)
        },
        StoreContract("pruning answers removes the oldest beyond the count, in steps, and leaves no expired one to be given out") { store in
            let (cutoff, young) = (5 * day, 9 * day)
            let answers = (1...3).map { AnswerRecord.sample("k\($0)", answeredAt: Int64($0)) }
            _ = try await store.commit(
                [], answers: answers + (4...8).map { AnswerRecord.sample("k\($0)", answeredAt: young + Int64($0)) })
            #expect(try await store.pruneAnswers(before: cutoff, keeping: 5, limit: 0) == (0, 0))
            while try await store.pruneAnswers(before: cutoff, keeping: 5, limit: 2).expired > 0 {}
            for number in 1...8 {
                #expect((try await store.answer(app: "1", key: "k\(number)", since: cutoff) != nil) == (number > 3), "\(number)")
            }
            #expect(try await store.pruneAnswers(before: cutoff, keeping: 2, limit: 2) == (0, 2))
            #expect(try await store.pruneAnswers(before: cutoff, keeping: 2, limit: 2) == (0, 1))
            #expect(try await store.pruneAnswers(before: cutoff, keeping: 2, limit: 2) == (0, 0))
            for number in 4...8 {
                #expect((try await store.answer(app: "1", key: "k\(number)", since: cutoff) != nil) == (number > 6), "\(number)")
            }
        },
    ]
}

extension AnswerRecord {
    package static func sample(
        _ key: String, app: String = "1", body: [UInt8] = Array("{}".utf8), answeredAt: Int64 = 1_000
    ) -> AnswerRecord {
        AnswerRecord(app: app, key: key, requestDigest: [1, 0, 255], status: 200, body: body, answeredAt: answeredAt)
    }
}
