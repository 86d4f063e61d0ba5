import HubAPI
import HubCore
import HubDelivery
import HubTesting
import OutboxTesting
import PusherProtocol
import Synchronization
import Testing

@testable import HubServer

@Suite("Publishes that owners decide about")
struct ForwardedPublishesTests {
    private let app = App(index: 0, id: "1", secrets: ["k": "s"])

    private func request(_ channels: [String]) throws -> PublishRequest {
        PublishRequest(name: "asked", channels: try channels.map { try #require(ChannelName($0)) }, data: DataLiteral(content: "{}"))
    }

    @Test("an answer comes when the owners of all channels have answered, and once")
    func severalOwners() throws {
        let test = try TestStore()
        let publishes = ForwardedPublishes(store: test.store, time: test.clock)
        let sent = Mutex<[ForwardedPublish]>([])
        publishes.connect { publish, done in
            sent.withLock { $0.append(publish) }
            done(true)
        }
        let answers = Mutex<[Result<[PublishOutcome], PublishRefusal>]>([])
        let command = PublishCommand(app: app, requests: [try request(["a", "b"]), try request(["c"])]) { result in
            answers.withLock { $0.append(result) }
        }
        #expect(publishes.forward(command))
        let ticket = try #require(sent.withLock { $0.first?.ticket })
        publishes.answered(ticket, .taken([(request: 0, channel: 1, event: "eb"), (request: 1, channel: 0, event: nil)]))
        #expect(answers.withLock { $0.isEmpty })
        publishes.answered(ticket, .taken([(request: 0, channel: 0, event: "ea")]))
        publishes.answered(ticket, .taken([(request: 0, channel: 0, event: "again")]))
        let outcomes = try answers.withLock { try #require($0.count == 1 ? $0[0] : nil).get() }
        #expect(outcomes.map { $0.events.map(\.id) } == [["ea", "eb"], []])
        #expect(publishes.count == 0)
    }

    @Test("a new owner is sent again what waits for its channels, under the same names and as perhaps known")
    func newOwner() throws {
        let test = try TestStore()
        let publishes = ForwardedPublishes(store: test.store, time: test.clock)
        let sent = Mutex<[ForwardedPublish]>([])
        publishes.connect { publish, _ in sent.withLock { $0.append(publish) } }
        let command = PublishCommand(app: app, requests: [try request(["a", "b"])]) { _ in }
        #expect(publishes.forward(command))
        let first = try #require(sent.withLock { $0.first })
        publishes.answered(first.ticket, .taken([(request: 0, channel: 0, event: "ea")]))
        let (answered, waiting) = (Partition.of(MemberPlace(app: "1", channel: "a")), Partition.of(MemberPlace(app: "1", channel: "b")))
        try #require(answered != waiting)
        publishes.sendAgain(PartitionSet([answered]))
        #expect(sent.withLock { $0.count } == 1)
        publishes.sendAgain(PartitionSet([waiting]))
        let again = try #require(sent.withLock { $0.count == 2 ? $0[1] : nil })
        #expect(again.ticket == first.ticket && again.mayBeKnown && again.requests.map(\.id.text) == first.requests.map(\.id.text))
    }

    @Test("a refusal of one owner is the answer")
    func refused() throws {
        let test = try TestStore()
        let publishes = ForwardedPublishes(store: test.store, time: test.clock)
        let tickets = Mutex<[UInt64]>([])
        publishes.connect { publish, _ in tickets.withLock { $0.append(publish.ticket) } }
        let answers = Mutex<[Result<[PublishOutcome], PublishRefusal>]>([])
        let command = PublishCommand(app: app, requests: [try request(["a", "b"])]) { result in answers.withLock { $0.append(result) } }
        #expect(publishes.forward(command))
        let refusal = PublishRefusal(status: 400, sentence: "no")
        publishes.answered(try #require(tickets.withLock { $0.first }), .refused([(request: 0, channel: 0)], refusal))
        #expect(answers.withLock { $0.map { $0.failure } } == [refusal])
    }

    @Test("channels without an answer wait in the store, under the ids that their owner would have made")
    func leftToTheStore() async throws {
        let test = try TestStore()
        let publishes = ForwardedPublishes(store: test.store, time: test.clock)
        let sent = Mutex<(ForwardedPublish, @Sendable (Bool) -> Void)?>(nil)
        publishes.connect { publish, done in sent.withLock { $0 = (publish, done) } }
        let app = app
        let requests = [try request(["a", "b"])]
        let result = await withCheckedContinuation { answer in
            let command = PublishCommand(app: app, requests: requests) { answer.resume(returning: $0) }
            #expect(publishes.forward(command))
            guard let (publish, done) = sent.withLock({ $0 }) else {
                answer.resume(returning: .failure(DeliveryBook.notStored))
                return
            }
            publishes.answered(publish.ticket, .taken([(request: 0, channel: 0, event: "ea")]))
            done(false)
        }
        let id = try #require(sent.withLock { $0?.0.requests.first?.id })
        #expect(try result.get().map { $0.events.map(\.id) } == [["ea", id.event("b")]])
        let rows = try await test.store.dueScheduled(now: test.clock.wallMilliseconds, limit: 9)
        #expect(rows.map(\.id) == [id.text] && rows.map(\.deliverAt) == [id.time])
        let stored = try ScheduledRequest.decode(try #require(rows.first?.request), app: app)
        #expect(stored.channels.map(\.text) == ["b"], "the other channel is published")
    }

    private func isNew(_ answer: PublishedPart??) -> Bool { if case .none = answer { true } else { false } }

    @Test("requests under one key have one answer, and a refusal lets the next one begin afresh")
    func keyed() {
        var keyed = KeyedPublishes()
        #expect(isNew(keyed.ask("k", .init(node: 1, ticket: 1), now: 0)), "the first one is decided")
        guard case .some(.none) = keyed.ask("k", .init(node: 2, ticket: 5), now: 0) else {
            Issue.record("the second one has to wait")
            return
        }
        let askers = keyed.finish("k", .taken([(request: 0, channel: 0, event: "e")]), now: 1)
        #expect(askers.map(\.node) == [1, 2] && askers.map(\.ticket) == [1, 5])
        guard case .some(.some(.taken(let places))) = keyed.ask("k", .init(node: 3, ticket: 9), now: 2) else {
            Issue.record("the answer is known")
            return
        }
        #expect(places.map(\.event) == ["e"])
        #expect(isNew(keyed.ask("l", .init(node: 1, ticket: 2), now: 0)))
        #expect(keyed.finish("l", .refused([], PublishRefusal(status: 400, sentence: "no")), now: 1).count == 1)
        #expect(isNew(keyed.ask("l", .init(node: 1, ticket: 3), now: 2)))
    }
}

extension Result {
    fileprivate var failure: Failure? { if case .failure(let failure) = self { failure } else { nil } }
}
