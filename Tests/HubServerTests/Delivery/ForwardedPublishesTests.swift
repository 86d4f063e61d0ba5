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
        let channels = try channels.map { try #require(ChannelName($0)) }
        return PublishRequest(name: "asked", channels: OneOrMany(channels), data: DataLiteral(content: "{}"))
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

    @Test("a publish under a key is not left to the store, because its key may be taken")
    func keyedWithoutOwner() async throws {
        let test = try TestStore()
        let publishes = ForwardedPublishes(store: test.store, time: test.clock)
        publishes.connect { _, done in done(false) }
        let answers = Mutex<[Result<[PublishOutcome], PublishRefusal>]>([])
        var command = PublishCommand(app: app, requests: [try request(["a"])]) { result in answers.withLock { $0.append(result) } }
        command.key = "k"
        #expect(publishes.forward(command))
        #expect(answers.withLock { $0.map { $0.failure?.status } } == [503])
        #expect(try await test.store.dueScheduled(now: .max, limit: 9).isEmpty)
    }

    @Test("what an owner published under a key is known to the next one, but for another request")
    func keyedPlaces() async throws {
        let test = try TestStore()
        func place(_ channel: Int, data: String = "{}") throws -> KeyedPlace {
            let id = PublishID.make(at: test.clock.wallMilliseconds)
            let request = ForwardedPublish.Request(
                name: "asked", channels: ["a", "b", "c"], data: DataLiteral(content: data), excluded: nil, id: id)
            return KeyedPlace(
                ForwardedPublish(ticket: 1, app: "1", requests: [request], mayBeKnown: false, key: "k"), key: "k", request: 0,
                channel: channel)
        }
        let now = test.clock.wallMilliseconds
        _ = try await test.store.commit([], answers: [try place(0).record(event: "e", at: now), try place(1).record(event: nil, at: now)])
        #expect(try await place(0).published(test.store, since: now) == .some("e"))
        #expect(try await place(1).published(test.store, since: now) == .some(nil))
        #expect(try await place(2).published(test.store, since: now) == .none)
        #expect(try await place(0).published(test.store, since: now + 1) == .none, "the key may be used again")
        await #expect(throws: PublishRefusal.self) { _ = try await place(0, data: "[]").published(test.store, since: now) }
        #expect(try await test.store.answer(app: "1", key: "k", since: 0) == nil)
    }

    @Test("a repetition of what this node has published is answered without the store, for the same request alone")
    func remembered() throws {
        func place(_ channel: Int, data: String = "{}", key: String = "k") -> KeyedPlace {
            let request = ForwardedPublish.Request(
                name: "asked", channels: ["a", "b", "c"], data: DataLiteral(content: data), excluded: nil, id: PublishID.make(at: 1))
            return KeyedPlace(
                ForwardedPublish(ticket: 1, app: "1", requests: [request], mayBeKnown: false, key: key), key: key, request: 0,
                channel: channel)
        }
        var keyed = KeyedPublishes()
        keyed.remember(place(0), event: "e", now: 1)
        keyed.remember(place(1), event: nil, now: 1)
        func event(_ place: KeyedPlace, at now: Int64 = 600_000) -> String?? { keyed.event(of: place, now: now) }
        #expect(event(place(0)) == .some("e") && event(place(1)) == .some(nil))
        #expect(event(place(2)) == .none && event(place(0, key: "other")) == .none)
        #expect(event(place(0, data: "[]")) == .none, "the store refuses it")
        #expect(event(place(0), at: 600_001) == .none, "where nothing came meanwhile, too")
    }

    @Test("requests that meet under one key have one answer, and a later one begins afresh")
    func keyed() {
        var keyed = KeyedPublishes()
        let first = [keyed.ask("k", .init(node: 1, ticket: 1)), keyed.ask("k", .init(node: 2, ticket: 5))]
        #expect(first == [true, false], "the first one is decided, and the second one waits")
        let askers = keyed.finish("k")
        #expect(askers.map(\.node) == [1, 2] && askers.map(\.ticket) == [1, 5])
        #expect(keyed.finish("k").isEmpty)
        let later = keyed.ask("k", .init(node: 3, ticket: 9))
        #expect(later, "the store has the answer")
    }
}

extension Result {
    fileprivate var failure: Failure? { if case .failure(let failure) = self { failure } else { nil } }
}
