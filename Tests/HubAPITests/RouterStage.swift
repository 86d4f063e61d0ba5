import HubCore
import HubDelivery
import HubTesting
import PusherProtocol
import Synchronization
import Testing

@testable import HubAPI
@testable import HubChannels

/// One loop's router over an engine without connections. In app 1, two connections occupy `room`, and three connections of the users a and
/// b occupy `presence-room`. Channels that begin with `defined` have a definition.
final class RouterStage {
    let clock = ManualClock()
    let delivery = ScriptedDelivery()
    let engine: ChannelEngine
    let schedule: StoringSchedule
    /// Its folder goes with it.
    private let events: TestEvents
    private let router: Router
    private let sink = SilentSink()
    let life = ScriptedLife()

    let people: Hub
    /// Nil: there is none.
    let console: ConsoleAPI?

    init(origins: [String] = [], console: ConsoleAccess? = nil) throws {
        let hub = try Hub(clock: clock)
        people = hub
        let directory = AppDirectory(
            hub.apps.apps.map { app in
                var app = app
                if app.id == "2" { app.eventDataBytesMax = 100 }
                return app
            })
        engine = ChannelEngine(
            loop: 0, loopCount: 1, directory: directory, process: ProcessTag(random: 7), sink: sink, time: clock, traits: { _ in nil },
            post: { _, _ in })
        let survey = ChannelSurvey(loopCount: 1) { [clock] _, message in
            if case .query(let question) = message { question(Self.occupied(clock)) }
        }
        let delivery = delivery
        events = hub.events
        schedule = StoringSchedule(store: hub.events.store)
        self.console = console.map { [clock] in ConsoleAPI($0, time: clock) }
        let operators = OperatorAPI(credential: nil, apps: NoApps(), cluster: NoCluster(), time: clock)
        router = Router(
            engine: engine, delivery: delivery, schedule: schedule,
            answers: AnswerBook(time: clock) { try delivery.recall(app: $0, key: $1, since: $2) }, survey: survey,
            backend: hub.backend, participants: hub.open, operators: operators,
            metrics: MetricsResource(access: .everybody) { $0("figures") }, time: clock, bodyBytesMax: Router.bodyBytesMin,
            corsOrigins: origins,
            readiness: Readiness(refusal: { [life] in life.refusal }, isClosing: { [life] in life.isClosing }),
            console: self.console)
    }

    /// A loop whose channels have subscribers.
    static func occupied(_ clock: ManualClock) -> ChannelEngine {
        let engine = ChannelEngine(
            loop: 0, loopCount: 1, directory: AppDirectory([App(index: 0, id: "1", secrets: [:])]), process: ProcessTag(random: 7),
            sink: SilentSink(), time: clock, traits: { _ in nil }, post: { _, _ in })
        let home = engine.home
        if let room = ChannelName("room") { home.setOccupancy(app: 0, channel: room, loop: 0, subscribers: 2) }
        guard let presence = ChannelName("presence-room") else { return engine }
        for (slot, user) in ["b", "a", "a"].enumerated() {
            let member = PresenceMember(userID: user, userInfo: nil)
            let connection = ConnectionID(loop: 0, slot: slot, generation: 1)
            _ = home.join(.init(app: 0, channel: presence, connection: connection, serial: 1), member, membersMax: 10)
        }
        return engine
    }

    /// Events that went to the loops without the delivery task.
    var publications: UInt64 { engine.counters.publications }

    /// Sends a request, signed as an SDK signs it, and returns what becomes of it.
    func start(
        _ method: String, _ path: String, _ body: String = "", query: [(name: String, value: String)] = [], headers: [String: String] = [:],
        app: String = "1", sign: Bool = true, from address: String = ""
    ) -> PendingAnswer {
        let key = ["1": "alpha-key", "2": "other-key", "3": "gamma-key"][app] ?? "no-key"
        let path = path.hasPrefix("//") ? String(path.dropFirst()) : "/apps/\(app)\(path)"
        let body = Array(body.utf8)
        let signed =
            sign
            ? RequestAuth.signedQuery(
                method: method, path: path, query: query, body: body, key: key,
                secret: key.replacing("-key", with: "-secret"), nowSeconds: clock.wallSeconds) : query
        let pending = PendingAnswer()
        let request = HTTPRequest(method: method, path: path, query: signed, headers: headers, body: body, remoteAddress: address)
        if let response = router.respond(to: request, later: LateAnswer { pending.answer($0) }) { pending.answer(response) }
        return pending
    }

    /// Bound on the body after the head of a request that claims to be signed.
    func bodyLimit(_ path: String, query: [(name: String, value: String)], headers: [String: String] = [:]) -> BodyLimit {
        router.bodyLimit(of: HTTPRequest(method: "POST", path: path, query: query, headers: headers))
    }

    func send(
        _ method: String, _ path: String, _ body: String = "", query: [(name: String, value: String)] = [], headers: [String: String] = [:],
        app: String = "1", sign: Bool = true, from address: String = ""
    ) async throws -> HTTPResponse {
        let pending = start(method, path, body, query: query, headers: headers, app: app, sign: sign, from: address)
        #expect(await eventually { pending.response != nil }, "no answer to \(method) \(path)")
        return try #require(pending.response)
    }
}

/// State of the hub that its probes report.
final class ScriptedLife: Sendable {
    private let state = Mutex<(refusal: String?, isClosing: Bool)>((nil, false))
    var refusal: String? { state.withLock { $0.refusal } }
    var isClosing: Bool { state.withLock { $0.isClosing } }
    func set(refusal: String?, isClosing: Bool = false) { state.withLock { $0 = (refusal, isClosing) } }
}

/// The answer to a request, once it is there.
final class PendingAnswer: Sendable {
    private let state = Mutex<HTTPResponse?>(nil)
    var response: HTTPResponse? { state.withLock { $0 } }

    func answer(_ response: HTTPResponse) {
        state.withLock { state in
            if state != nil { Issue.record("answered twice") }
            state = response
        }
    }
}

extension HTTPResponse {
    var text: String { String(decoding: body, as: UTF8.self) }
    var json: JSONValue { (try? JSONValue(parsing: body)) ?? .null }
    var error: String { json["error"]?.stringValue ?? "" }

    /// The header's one value.
    subscript(header name: String) -> String? {
        let values = headers.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
        if values.count > 1 { Issue.record("\(name) stands \(values.count) times") }
        return values.first
    }
}

/// Takes publishes as delivery does, keeps their answers, and answers at once or when told.
final class ScriptedDelivery: EventPort {
    private struct State {
        var holds = false
        var isFull = false
        var isBroken = false
        var refusal: PublishRefusal?
        var taken: [PublishCommand] = []
        var trials: [PublishCommand] = []
        var held: [PublishCommand] = []
        var kept: [String: AnswerRecord] = [:]
        var recalls = 0
    }

    private let state = Mutex(State())

    var taken: Int { state.withLock { $0.taken.count } }
    var trials: Int { state.withLock { $0.trials.count } }
    var lastRequest: PublishRequest? { state.withLock { $0.taken.last?.requests.first } }
    var recalls: Int { state.withLock { $0.recalls } }
    func hold() { state.withLock { $0.holds = true } }
    func setFull(_ isFull: Bool) { state.withLock { $0.isFull = isFull } }
    func setBroken(_ isBroken: Bool) { state.withLock { $0.isBroken = isBroken } }
    func refuse(_ refusal: PublishRefusal?) { state.withLock { $0.refusal = refusal } }

    func isDefined(_ channel: ChannelName) -> Bool { channel.text.hasPrefix("defined") }

    func submit(_ command: PublishCommand) -> Bool {
        let (isTaken, answersNow) = state.withLock { state in
            if state.isFull { return (false, false) }
            if !command.purpose.isReal {
                state.trials.append(command)
                return (true, true)
            }
            state.taken.append(command)
            if state.holds { state.held.append(command) }
            return (true, !state.holds)
        }
        if answersNow { settle(command) }
        return isTaken
    }

    func release() {
        let held = state.withLock { state in
            defer { state.held = [] }
            state.holds = false
            return state.held
        }
        for command in held { settle(command) }
    }

    private func settle(_ command: PublishCommand) {
        let outcomes = command.requests.map { request in
            var outcome = PublishOutcome(events: request.channels.filter(isDefined).map { ($0, "event-\(taken)-\($0.text)") })
            if command.purpose == .forecast { outcome.forecasts = request.channels.map(forecast) }
            return outcome
        }
        let refusal = state.withLock { state in
            if state.refusal == nil, command.purpose.isReal, let answer = command.answers?(outcomes).first {
                state.kept["\(answer.app) \(answer.key)"] = answer
            }
            return state.refusal
        }
        command.respond(refusal.map { .failure($0) } ?? .success(outcomes))
    }

    /// Three recipients, the first of them listed.
    private func forecast(_ channel: ChannelName) -> EventForecast {
        guard isDefined(channel) else { return EventForecast(channel: channel.text, definition: nil) }
        var forecast = EventForecast(channel: channel.text, definition: "defined", policy: .critical, lifetimeMilliseconds: 600_000)
        forecast.choices = [.awaited: 1, .pushed: 2]
        forecast.recipients = [
            .init(user: "u", note: RecipientNote(state: .live, choice: .awaited), waitMilliseconds: 8_000, devices: ["phone"])
        ]
        return forecast
    }

    /// As the store would after a publish that another one kept.
    func keep(_ answer: AnswerRecord) { state.withLock { $0.kept["\(answer.app) \(answer.key)"] = answer } }

    func recall(app: String, key: String, since: Int64) throws -> AnswerRecord? {
        try state.withLock { state in
            state.recalls += 1
            if state.isBroken { throw BrokenStore() }
            return state.kept["\(app) \(key)"].flatMap { $0.answeredAt >= since ? $0 : nil }
        }
    }

    struct BrokenStore: Error {}
}

/// Writes publishes for later into a store, where nobody looks for what is due.
final class StoringSchedule: SchedulePort {
    let store: any DeliveryStore
    private let failure = Mutex<(any Error)?>(nil)

    init(store: any DeliveryStore) {
        self.store = store
    }

    func fail(_ error: (any Error)?) { failure.withLock { $0 = error } }

    func schedule(_ publishes: [ScheduledPublish], answers: [AnswerRecord]) async throws {
        if let error = failure.withLock({ $0 }) { throw error }
        try await store.schedule(publishes, answers: answers)
    }
}

/// Nobody is connected.
private final class SilentSink: DeliverySink {
    func deliver(_ frames: UnsafeRawBufferPointer, to slots: UnsafeBufferPointer<UInt32>, latestOnly: UnsafeBufferPointer<LatestOnlyFrame>)
    {}
    func send(_ frames: [UInt8], to connection: ConnectionID) {}
    func close(_ connection: ConnectionID, code: UInt16, reason: String) {}
    func watchSilence(_ connection: ConnectionID, pingAfter: Duration, pongWithin: Duration) {}
}

/// A hub whose apps cannot be changed.
private struct NoApps: AppPort {
    private static let refusal = AppRefusal(404, "no apps here")

    func apps() async throws -> [AppListing] { [] }
    func addApp(id: String?, settings: [AppSetting: JSONValue]) async throws -> (app: AppListing, secret: String) { throw Self.refusal }
    func changeApp(id: String, settings: [AppSetting: JSONValue]) async throws -> AppListing { throw Self.refusal }
    func rotateKey(app id: String, keptMilliseconds: Int64) async throws -> (app: AppListing, secret: String) { throw Self.refusal }
    func removeApp(id: String) async throws -> (connections: Int, remains: AppRemains) { throw Self.refusal }
}

private struct NoCluster: ClusterPort {
    func nodes() async -> (nodes: [NodeListing], isComplete: Bool) { ([], true) }
}
