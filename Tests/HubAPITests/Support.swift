import HubChannels
import HubCore
import HubCrypto
import HubDefinitions
import HubDelivery
import HubJSON
import PusherProtocol
import Synchronization
import Testing

@testable import HubAPI

final class ManualClock: TimeSource {
    /// 2026-01-09T01:00:00.250Z
    static let start: Int64 = 1_767_920_400_250
    private let milliseconds = Mutex<Int64>(0)

    var monotonicNanoseconds: UInt64 { milliseconds.withLock { 5_000_000_000 + UInt64($0) * 1_000_000 } }
    var wallMilliseconds: Int64 { milliseconds.withLock { Self.start + $0 } }

    func advance(seconds: Int64) { milliseconds.withLock { $0 += seconds * 1000 } }
}

/// Writes down what it is told.
final class RecordingDelivery: AttendancePort {
    enum Call: Equatable {
        case bind(socketID: String, app: String, user: String, device: String, channel: String? = nil)
        case removed(session: String, user: String)
        case ended(session: String, users: [String])
        case state(app: String, user: String, device: String, AppState, keepsWorking: Bool = false)
        case roster(app: String, session: String, user: String)
        case received(AppReceipt)
    }

    private let recorded = Mutex<[Call]>([])
    private let present = Mutex<[String: ParticipantPresence]>([:])

    var calls: [Call] { recorded.withLock { $0 } }
    func forget() { recorded.withLock { $0 = [] } }
    func setPresent(_ users: [String: ParticipantPresence]) { present.withLock { $0 = users } }

    func bind(_ socketID: SocketID, app: String, user: String, device: String, channel: ChannelName?) async {
        recorded.withLock {
            $0.append(.bind(socketID: socketID.description, app: app, user: user, device: device, channel: channel?.text))
        }
    }
    func setDeviceState(app: String, user: String, device: String, _ state: AppState, keepsWorking: Bool) async {
        recorded.withLock { $0.append(.state(app: app, user: user, device: device, state, keepsWorking: keepsWorking)) }
    }
    func presence(app: String, session: Session, users: [String]) async -> [String: ParticipantPresence] {
        present.withLock { $0.filter { users.contains($0.key) } }
    }
    func presence(app: String, channel: String, users: [String]) async -> [String: ParticipantPresence] {
        present.withLock { $0.filter { users.contains($0.key) } }
    }
    func received(_ receipt: AppReceipt) async { recorded.withLock { $0.append(.received(receipt)) } }
    func removed(_ session: Session, user: String) async { recorded.withLock { $0.append(.removed(session: session.id, user: user)) } }
    func sessionEnded(_ session: Session, users: [String]) async {
        recorded.withLock { $0.append(.ended(session: session.id, users: users)) }
    }
    func rosterChanged(app: String, session: String, user: String) async {
        recorded.withLock { $0.append(.roster(app: app, session: session, user: user)) }
    }
}

/// Writes down what it is to send.
final class RecordingQueue: PushQueue {
    private let recorded = Mutex<[PushRecord]>([])
    var deliveries: [PushRecord] { recorded.withLock { $0 } }
    func enqueue(_ deliveries: [PushRecord]) async { recorded.withLock { $0 += deliveries } }
}

/// Both halves of the API over one directory: app 1 has two keys, app 2 one, app 3 is disabled.
struct Hub {
    let clock: ManualClock
    let directory: TestPeopleStore
    let events: TestEvents
    let delivery = RecordingDelivery()
    let pushes: RecordingQueue
    let apps: AppDirectory
    let backend: BackendAPI
    let live: LiveStream
    let open: ParticipantAPI
    /// For how long joins had to wait for their turns; nobody really waits.
    let pauses = Pauses()

    /// Members of a channel without a definition.
    static let roommates = [
        ChannelMember(user: "zoe", places: [.init(node: "n2", loop: nil), .init(node: "n3", loop: nil)]),
        ChannelMember(user: "ann", places: [.init(node: nil, loop: 1)]),
    ]

    static let secrets = ["alpha-key": "alpha-secret", "beta-key": "beta-secret"]
    static let quizFile = """
        channel: presence-quiz-{session}
        roles: [player, host]
        join: { role: player }
        events: { ping: { to: all, policy: realtime_only } }
        """
    static let files = [
        ("channels/quiz.yaml", quizFile),
        (
            "channels/orders.yaml",
            """
            channel: private-orders-{session}-{user}
            events: { ping: { to: all, policy: realtime_only } }
            """
        ),
        (
            "channels/duel.yaml",
            """
            channel: private-{session}
            join: { identity: device }
            events: { ping: { to: all, policy: realtime_only } }
            """
        ),
    ]

    init(
        files: [(String, String)] = Hub.files, wrongCodes: Int = 10, joinsPerMinute: Int = 300, environment: APNsEnvironment = .production,
        clock: ManualClock = ManualClock(), secrets: [String: String] = Hub.secrets, sharing other: Hub? = nil
    ) throws {
        var disabled = App(index: 2, id: "3", secrets: ["gamma-key": "gamma-secret"])
        disabled.isEnabled = false
        let definitions = try DefinitionSet.load(files.map { (file: $0.0, text: $0.1) })
        self.clock = clock
        events = try other?.events ?? TestEvents(clock: clock)
        directory = other?.directory ?? TestPeopleStore(events.store)
        apps = AppDirectory([
            App(index: 0, id: "1", secrets: secrets), App(index: 1, id: "2", secrets: ["other-key": "other-secret"]), disabled,
        ])
        let (store, queue) = (events.store, RecordingQueue())
        pushes = queue
        live = LiveStream(time: clock)
        backend = BackendAPI(
            directory: self.directory, store: store, delivery: delivery, pushes: queue,
            answers: AnswerBook(time: clock) { try await store.answer(app: $0, key: $1, since: $2) }, time: clock,
            definitions: { definitions },
            defaultEnvironment: environment,
            occupied: OccupiedChannels { _, channel in
                switch channel.text {
                case "presence-room": Hub.roommates
                case "presence-quiz-s1": [ChannelMember(user: "u", places: [.init(node: nil, loop: 1)])]
                case "presence-lost": nil
                default: []
                }
            } names: { app, text, limit in
                let names = ["presence-quiz-s1", "presence-quiz-s2", "room"].filter { app.id == "1" && $0.hasPrefix(text) }
                return Array(names.prefix(limit))
            }, live: live)
        open = ParticipantAPI(
            directory: self.directory, store: events.store, apps: apps, delivery: delivery, time: clock, definitions: { definitions },
            defaultEnvironment: environment, limits: Hub.limits(wrongCodes, joinsPerMinute), pause: pauses.note)
    }

    static func limits(_ wrongCodes: Int = 10, _ joinsPerMinute: Int = 300) -> JoinLimits {
        var limits = JoinLimits()
        limits.wrongCodesPerMinute = wrongCodes
        limits.joinsPerMinute = joinsPerMinute
        return limits
    }

    /// A request of app 1's backend.
    func call(
        _ method: String, _ path: String, _ body: JSONValue? = nil, query: [String: String] = [:], headers: [String: String] = [:],
        app: String = "1"
    ) async throws -> Answer {
        let components = path.split(separator: "/").map(String.init)
        let request = HTTPRequest(
            method: method, path: "/apps/\(app)/\(path)", query: query.map { (name: $0.key, value: $0.value) }, headers: headers,
            body: body?.serialized() ?? [])
        let app = try #require(apps.app(id: app))
        return Answer(try #require(await backend.respond(to: request, app: app, pathComponents: components)))
    }

    /// A request of an app.
    func send(
        _ method: String, _ path: String, _ body: JSONValue? = nil, form: String? = nil, query: [String: String] = [:],
        token: String? = nil,
        headers: [String: String] = [:], from address: String = "192.0.2.1"
    ) async throws -> Answer {
        var headers = headers
        if let token { headers["authorization"] = "Bearer \(token)" }
        let request = HTTPRequest(
            method: method, path: path, query: query.map { (name: $0.key, value: $0.value) }, headers: headers,
            body: form.map { Array($0.utf8) } ?? body?.serialized() ?? [],
            remoteAddress: address)
        return Answer(try #require(await open.respond(to: request)))
    }

    @discardableResult
    func makeSession(_ id: String = "s1", definition: String = "quiz", code: String = "ABC123", app: String = "1") async throws -> Answer {
        let answer = try await call("PUT", "sessions/\(id)", ["definition": .string(definition), "join_code": .string(code)], app: app)
        #expect(answer.status == 200)
        return answer
    }

    func join(
        _ more: [String: JSONValue] = [:], code: String = "ABC123", email: String = "ann@example.com", headers: [String: String] = [:],
        from address: String = "192.0.2.1"
    ) async throws -> Answer {
        let body: [String: JSONValue] = ["name": "Ann", "email": .string(email)]
        return try await send(
            "POST", "/api/scenarios/sessions/\(code)/join", .object(body.merging(more) { _, new in new }), headers: headers, from: address)
    }

    /// Joins and returns the token.
    func token(_ more: [String: JSONValue] = [:], code: String = "ABC123", email: String = "ann@example.com") async throws -> String {
        try #require(try await join(more, code: code, email: email)["token"]?.stringValue)
    }
}

extension Hub {
    /// Joins; the participant's token and user id.
    func participant(_ more: [String: JSONValue] = [:], email: String = "ann@example.com") async throws -> (token: String, user: String) {
        let answer = try await join(more, email: email)
        return (try #require(answer["token"]?.stringValue), try #require(answer["user_id"]?.stringValue))
    }
}

/// Writes down how long somebody was to wait, and does not wait.
final class Pauses: Sendable {
    private let recorded = Mutex<[UInt64]>([])
    var nanoseconds: [UInt64] { recorded.withLock { $0 } }
    @Sendable func note(_ nanoseconds: UInt64) async { recorded.withLock { $0.append(nanoseconds) } }
}

struct Answer {
    let status: Int
    let json: JSONValue
    let headers: [String: String]

    init(_ response: HTTPResponse) {
        status = response.status
        json = (try? JSONValue(parsing: response.body)) ?? .null
        headers = Dictionary(response.headers.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
    }

    subscript(name: String) -> JSONValue? { json[name] }
    var error: String { json["error"]?.stringValue ?? "" }
}

let hexToken = String(repeating: "0A", count: 32)
let fcmToken = "dXJ0:APA91b-" + String(repeating: "q", count: 140)

/// Ids as apps make them up.
let adasPhone = "3f6c1f0e-7a51-4b7e-9a3e-0d7c2b1a5e10"
let bensPhone = "b81d77a2-09cc-4e06-8f3b-6f1f0d2c9e41"
let adasHandle = InstallationID(adasPhone)?.handle ?? ""
