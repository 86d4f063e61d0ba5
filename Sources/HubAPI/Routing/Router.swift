package import HubChannels
package import HubCore
internal import HubCrypto
package import HubDelivery
internal import HubJSON
internal import PusherProtocol

/// Routes requests to their resources. One per loop; on the loop's thread.
///
/// Publishing and questions about channels are answered on the loop. All other requests are tasks, because they wait for the store.
package final class Router {
    let engine: ChannelEngine
    private let events: EventsResource
    private let channels: ChannelsResource
    private let users: UsersResource
    private let backend: BackendAPI
    private let participants: ParticipantAPI
    let time: any TimeSource
    let metrics: MetricsResource
    let readiness: Readiness
    /// Nil: the hub has no console.
    let console: ConsoleAPI?
    let cors: CrossOrigin
    private let parser: JSONParser
    let operators: OperatorAPI

    /// Smallest limit on a request's body, regardless of the limits of events.
    package static let bodyBytesMin = 1 << 20
    /// Operators' routes have short paths; longer paths skip the comparisons.
    private static let operatorPathBytesMax = "/metrics".utf8.count
    /// Nesting depth of a body's JSON.
    private static let bodyDepthMax = 32

    /// - Parameters:
    ///   - bodyBytesMax: bytes of the largest body; capacity of the JSON parser.
    ///   - corsOrigins: origins of browser apps; `*`: every origin.
    ///   - console: nil: the hub has none.
    package init(
        engine: ChannelEngine, delivery: any EventPort, schedule: any SchedulePort, answers: AnswerBook, survey: ChannelSurvey,
        backend: BackendAPI, participants: ParticipantAPI, operators: OperatorAPI,
        metrics: MetricsResource, time: any TimeSource, bodyBytesMax: Int, corsOrigins: [String], readiness: Readiness,
        console: ConsoleAPI? = nil, live: LiveStream? = nil
    ) {
        parser = JSONParser(capacityBytes: bodyBytesMax, depthMax: Self.bodyDepthMax)
        cors = CrossOrigin(origins: corsOrigins)
        self.engine = engine
        self.operators = operators
        events = EventsResource(
            engine: engine, delivery: delivery, survey: survey, answers: answers, live: live,
            laterPublishes: LaterPublishes(delivery: delivery, schedule: schedule, answers: answers, time: time))
        channels = ChannelsResource(engine: engine, survey: survey)
        users = UsersResource(engine: engine)
        self.backend = backend
        self.participants = participants
        self.metrics = metrics
        self.time = time
        self.readiness = readiness
        self.console = console
    }

    /// Answers a request, or returns nil and calls `later` once, from any thread.
    package func respond(to request: HTTPRequest, later: LateAnswer) -> HTTPResponse? {
        if request.path == CompanionResource.path { return CompanionResource.respond(to: request) }
        // Only browsers send an origin.
        guard let origin = request.headers["origin"] else { return route(request, later: later) }
        // Pages of other origins have no business with the console.
        if ConsoleAPI.owns(request.path) { return route(request, later: later) }
        if request.method == "OPTIONS" { return cors.preflight(from: origin) }
        let cors = cors
        return route(request, later: later.changed { cors.allow($0, for: origin) }).map { cors.allow($0, for: origin) }
    }

    private func route(_ request: HTTPRequest, later: LateAnswer) -> HTTPResponse? {
        if readiness.isClosing(), request.path != "/health" { return .error(503, Readiness.shuttingDown) }
        if let id = Self.publisher(request.path) { return app(request, id: id, Self.eventsPath, later: later) }
        if request.path.utf8.count <= Self.operatorPathBytesMax {
            switch request.path {
            case "/health", "/ready": return health(request)
            case "/metrics": return metrics.respond(to: request, later: later)
            default: break
            }
        }
        if ConsoleAPI.owns(request.path) { return console(request, later: later) }
        let components = Self.components(request.path)
        if components.first == OperatorAPI.root { return operators.respond(to: request, components, later: later) }
        // A reverse proxy may leave its own prefix.
        if let user = UsersResource.userWithoutApp(components) { return terminate(request, user: user, later: later) }
        if let apps = components.firstIndex(of: "apps"), apps + 1 < components.count {
            return app(request, id: components[apps + 1], Array(components[(apps + 2)...]), later: later)
        }
        // Handshakes never come here, because the transport takes them.
        if components.count >= 2, components[components.count - 2] == "app" {
            return request.method == "GET" || request.method == "HEAD" ? .upgradeRequired : methodNotAllowed(request, "GET, HEAD")
        }
        let participants = participants
        Task { later(await participants.respond(to: request) ?? .nothing(at: request)) }
        return nil
    }

    static func components(_ path: String) -> [String] {
        path.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
    }

    static func noApp(_ id: String) -> HTTPResponse { .error(404, "there is no app with the id '\(id.quotable(64))'") }

    private static let eventsPath = ["events"]

    /// The app of `/apps/{app}/events`, the path of nearly all requests. Nil for every other path, even one that only differs in spelling.
    static func publisher(_ path: String) -> String? {
        let (front, back): (StaticString, StaticString) = ("/apps/", "/events")
        let (start, length) = (front.utf8CodeUnitCount, path.utf8.count)
        let end = length - back.utf8CodeUnitCount
        guard start < end else { return nil }
        var path = path
        return path.withUTF8 { bytes in
            guard unsafe front.isEqual(to: UnsafeBufferPointer(rebasing: bytes[..<start])),
                unsafe back.isEqual(to: UnsafeBufferPointer(rebasing: bytes[end...])),
                unsafe !bytes[start..<end].contains(UInt8(ascii: "/"))
            else { return nil }
            return unsafe String(decoding: bytes[start..<end], as: UTF8.self)
        }
    }

    private func health(_ request: HTTPRequest) -> HTTPResponse {
        guard request.method == "GET" || request.method == "HEAD" else { return methodNotAllowed(request, "GET, HEAD") }
        if request.path == "/health" { return .json(["health": "OK"]) }
        return readiness.refusal().map { .error(503, $0) } ?? .json(["ready": true])
    }

    private func app(
        _ request: HTTPRequest, id: String, _ path: [String], later: LateAnswer
    ) -> HTTPResponse? {
        guard let app = engine.apps.app(id: id) else { return Self.noApp(id) }
        return refusal(of: request, for: app) ?? dispatch(request, app: app, path, later: later)
    }

    /// Answers a request that may have what it asks for, or returns nil and calls `later` once.
    /// - Parameter path: the components after `/apps/{app}`.
    func dispatch(
        _ request: HTTPRequest, app: App, _ path: [String], later: LateAnswer
    ) -> HTTPResponse? {
        // A HEAD is signed as such and answered like a GET; the transport leaves the body out.
        let method = request.method == "HEAD" ? "GET" : request.method
        switch (path.first, path.count) {
        case ("events", 1) where method == "POST", ("batch_events", 1):
            guard method == "POST" else { return methodNotAllowed(request, "POST") }
            return events.publish(request, app: app, isBatch: path[0] == "batch_events", parser: parser, later: later)
        case ("channels", 1...3) where path.count < 3 || path[2] != "history" && path[2] != "members":
            return channelRoute(request, method, app: app, path, later: later)
        case ("connections", 1):
            guard method == "GET" else { return methodNotAllowed(request, "GET, HEAD") }
            guard let backplane = engine.nodes?.backplane else {
                return .json(["connections": .int(Int64(engine.directory.connectionCount(app)))])
            }
            Task {
                let count = await backplane.connections(app: app.id)
                later(count.map { .json(["connections": .int(Int64($0))]) } ?? .interrupted)
            }
            return nil
        case ("users", 3...) where path.last == "terminate_connections":
            return users.terminate(request, app: app, user: path[1..<path.count - 1].joined(separator: "/"), later: later)
        default:
            let backend = backend
            var request = request
            request.method = method
            Task { [request] in later(await backend.respond(to: request, app: app, pathComponents: path) ?? .nothing(at: request)) }
            return nil
        }
    }

    /// Reason to refuse a signed request; nil: accepted.
    private func refusal(of request: HTTPRequest, for app: App) -> HTTPResponse? {
        do {
            try RequestAuth.verify(request, nowSeconds: time.wallSeconds, key: { app.signers[$0] })
        } catch {
            return .error(401, error.message)
        }
        return app.isEnabled ? nil : .error(403, "the app is disabled")
    }

    /// The Python library's path has no app, so the key names it.
    private func terminate(_ request: HTTPRequest, user: String, later: LateAnswer) -> HTTPResponse? {
        guard let key = request.parameter("auth_key") else { return .error(401, "Missing parameter: auth_key") }
        guard let app = engine.apps.app(key: key) else { return .error(401, "Unknown auth_key") }
        return refusal(of: request, for: app) ?? users.terminate(request, app: app, user: user, later: later)
    }

    private func channelRoute(
        _ request: HTTPRequest, _ method: String, app: App, _ path: [String], later: LateAnswer
    ) -> HTTPResponse? {
        let resource = path.count == 3 ? path[2] : nil
        guard resource == nil || ["users", "events", "stats"].contains(resource) else {
            return .error(404, "a channel has only /users, /members, /history, /stats and /events below it")
        }
        let allowed = resource == "events" ? "POST" : "GET"
        guard method == allowed else { return methodNotAllowed(request, allowed == "GET" ? "GET, HEAD" : allowed) }
        if path.count == 1 { return channels.list(request, app: app, later: later) }
        guard let channel = ChannelName(path[1]) else { return .error(400, "the channel's name is not allowed: \(ChannelName.rule)") }
        return switch resource {
        case "users": channels.users(request, app: app, channel: channel, later: later)
        case "stats": channels.stats(request, app: app, channel: channel, later: later)
        case "events": events.publish(request, app: app, to: channel, later: later)
        default: channels.show(request, app: app, channel: channel, later: later)
        }
    }

    private func methodNotAllowed(_ request: HTTPRequest, _ allowed: String) -> HTTPResponse { .methodNotAllowed(request, allowed) }
}

@available(*, unavailable)
extension Router: Sendable {}

extension HTTPResponse {
    static func methodNotAllowed(_ request: HTTPRequest, _ allowed: String) -> HTTPResponse {
        HTTPResponse(
            status: 405, body: HTTPResponse.error(405, "\(request.method) is not possible here: use \(allowed)").body,
            headers: [("Allow", allowed)])
    }

    /// Answer of the WebSocket endpoint to plain HTTP (RFC 9110, 15.5.22).
    fileprivate static var upgradeRequired: HTTPResponse {
        HTTPResponse(
            status: 426,
            body: HTTPResponse.error(426, "this is the WebSocket endpoint: connect with ws:// or wss:// and a Pusher client").body,
            headers: [("Upgrade", "websocket"), ("Connection", "Upgrade")])
    }

    /// The way between the nodes gives no answer.
    static var interrupted: HTTPResponse {
        var response = error(503, "the way to the other nodes is interrupted: try again in a moment")
        response.headers.append(("Retry-After", "1"))
        return response
    }

    /// No route has this path.
    static func nothing(at request: HTTPRequest) -> HTTPResponse {
        .error(404, "there is nothing at \(request.path.quotable(200)): see docs/http-api.md")
    }
}
