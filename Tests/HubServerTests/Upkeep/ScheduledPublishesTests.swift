import HubAPI
import HubChannels
import HubCore
import HubDelivery
import HubTesting
import Logging
import OutboxTesting
import PusherProtocol
import Synchronization
import Testing

@testable import HubServer

/// Takes publishes, and answers as scripted.
private final class AnsweringDelivery: EventPort {
    enum Answer {
        case take
        case refuse(PublishRefusal)
        /// The publish is cancelled between its reading and its commit.
        case cancelled
    }

    private let state = Mutex((taken: [PublishCommand](), answers: [Answer](), isFull: false))
    private let store: any DeliveryStore
    private let clock: ManualClock

    init(store: any DeliveryStore, clock: ManualClock) {
        (self.store, self.clock) = (store, clock)
    }

    var taken: [PublishCommand] { state.withLock { $0.taken } }
    /// Answers to the next commands, in order; later commands are taken.
    func answer(_ answers: [Answer]) { state.withLock { $0.answers = answers } }
    func setFull(_ isFull: Bool) { state.withLock { $0.isFull = isFull } }

    func isDefined(_ channel: ChannelName) -> Bool { true }

    func submit(_ command: PublishCommand) -> Bool {
        let answer = state.withLock { state -> Answer? in
            if state.isFull { return nil }
            state.taken.append(command)
            return state.answers.isEmpty ? .take : state.answers.removeFirst()
        }
        guard let answer else { return false }
        let (store, now) = (store, clock.wallMilliseconds)
        Task {
            if case .refuse(let refusal) = answer { return command.respond(.failure(refusal)) }
            guard case .scheduled(let id) = command.purpose else { return }
            do {
                if case .cancelled = answer { _ = try await store.cancelScheduled(app: command.app.id, id: id, now: now) }
                _ = try await store.commit([], answers: [], scheduled: [ScheduledTake(id: id, at: now, events: [])])
                command.respond(.success([]))
            } catch {
                command.respond(.failure(.notWaiting))
            }
        }
        return true
    }
}

@Suite("ScheduledPublishes")
struct ScheduledPublishesTests {
    private struct Stage {
        let test: TestStore
        let delivery: AnsweringDelivery
        let scheduled: ScheduledPublishes

        init() throws {
            test = try TestStore()
            delivery = AnsweringDelivery(store: test.store, clock: test.clock)
            var disabled = App(index: 1, id: "2", secrets: ["l": "s"])
            disabled.isEnabled = false
            scheduled = ScheduledPublishes(
                store: test.store, apps: AppDirectory([App(index: 0, id: "1", secrets: ["k": "s"]), disabled]), delivery: delivery,
                time: test.clock,
                logger: Logger(label: "test"))
        }

        func publish(_ id: String, in milliseconds: Int64, app: String = "1", data: String = "d") -> ScheduledPublish {
            ScheduledPublish(
                id: id, app: app, deliverAt: test.clock.wallMilliseconds + milliseconds,
                request: Array(#"{"name":"n","channels":["c"],"data":"\#(data)"}"#.utf8), createdAt: test.clock.wallMilliseconds)
        }

        func state(_ id: String, app: String = "1") async throws -> ScheduledPublish? { try await test.store.scheduled(app: app, id: id) }

        /// Waits until the publish has ended.
        func ended(_ id: String, app: String = "1") async throws -> ScheduledPublish? {
            let end = ContinuousClock.now + .seconds(60)
            while true {
                let found = try await state(id, app: app)
                if found?.state != .waiting || ContinuousClock.now > end { return found }
                try await Task.sleep(for: .milliseconds(5))
            }
        }
    }

    /// Runs the service during `body`, and waits for its end.
    private func run(_ stage: Stage, _ body: () async throws -> Void) async throws {
        let scheduled = stage.scheduled
        let task = Task { await scheduled.run() }
        defer { scheduled.close() }
        try await body()
        scheduled.close()
        await task.value
    }

    @Test("what an earlier process left is published when it is due, in the order of the times")
    func due() async throws {
        let stage = try Stage()
        try await stage.test.store.schedule(
            [stage.publish("b", in: -5), stage.publish("a", in: -9), stage.publish("later", in: 3_600_000)], answers: [])
        try await run(stage) { () async throws in
            #expect(try await stage.ended("a")?.state == .published)
            #expect(try await stage.ended("b")?.state == .published)
        }
        #expect(stage.delivery.taken.map(\.purpose) == [.scheduled(id: "a"), .scheduled(id: "b")])
        #expect(stage.delivery.taken.first?.requests.first?.channels.map(\.text) == ["c"])
        #expect(try await stage.state("later")?.state == .waiting)
    }

    @Test("what is scheduled while it sleeps is published at its time, and not before")
    func wakes() async throws {
        let stage = try Stage()
        try await run(stage) { () async throws in
            try await stage.scheduled.schedule([stage.publish("far", in: 3_600_000)], answers: [])
            try await stage.scheduled.schedule([stage.publish("near", in: 200)], answers: [])
            try await Task.sleep(for: .milliseconds(100))
            #expect(stage.delivery.taken.isEmpty)
            // The alarm uses the real clock, but due times are compared with this one.
            stage.test.clock.advance(milliseconds: 200)
            #expect(try await stage.ended("near")?.state == .published)
        }
        #expect(stage.delivery.taken.count == 1)
    }

    @Test("one that is refused at its time has failed, and says why")
    func refused() async throws {
        let stage = try Stage()
        stage.delivery.answer([.refuse(PublishRefusal(status: 404, sentence: "there is no session"))])
        try await stage.test.store.schedule(
            [
                stage.publish("gone", in: -9), stage.publish("good", in: -8), stage.publish("disabled", in: -7, app: "2"),
                stage.publish("removed", in: -6, app: "3"), stage.publish("large", in: -5, data: String(repeating: "x", count: 10_241)),
            ], answers: [])
        try await run(stage) { () async throws in
            #expect(try await stage.ended("gone")?.outcome == "there is no session")
            #expect(try await stage.ended("good")?.state == .published)
            for (id, app, reason) in [
                ("disabled", "2", "is disabled"), ("removed", "3", "not in the configuration"), ("large", "1", "10240"),
            ] {
                let found = try #require(try await stage.ended(id, app: app))
                #expect(found.state == .failed && found.outcome?.contains(reason) == true, "\(id): \(found.outcome ?? "")")
            }
        }
        #expect(stage.delivery.taken.count == 2)
    }

    @Test("what could not be taken for the moment is tried again; what was cancelled is not")
    func heldUp() async throws {
        let stage = try Stage()
        stage.delivery.answer([.refuse(PublishRefusal(status: 503, sentence: "the store is away")), .cancelled])
        try await stage.test.store.schedule([stage.publish("held", in: -9), stage.publish("cancelled", in: -8)], answers: [])
        try await run(stage) { () async throws in
            #expect(try await stage.ended("cancelled")?.state == .cancelled)
            stage.delivery.setFull(true)
            // The service asks at once instead of after a second.
            try await stage.scheduled.schedule([], answers: [])
            #expect(try await stage.state("held")?.state == .waiting)
            stage.delivery.setFull(false)
            #expect(try await stage.ended("held")?.state == .published)
        }
        #expect(stage.delivery.taken.filter { $0.purpose == .scheduled(id: "cancelled") }.count == 1)
    }

    @Test("more than a batch is due: all are published, each once")
    func many() async throws {
        let stage = try Stage()
        let count = 2 * ScheduledPublishes.batchMax + 3
        try await stage.test.store.schedule((0..<count).map { stage.publish("s\($0)", in: Int64($0) - 1_000) }, answers: [])
        try await run(stage) { () async throws in #expect(try await stage.ended("s\(count - 1)")?.state == .published) }
        #expect(stage.delivery.taken.map(\.purpose) == (0..<count).map { .scheduled(id: "s\($0)") })
    }
}
