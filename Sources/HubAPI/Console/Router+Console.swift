internal import HubChannels
internal import HubCore
internal import PusherProtocol

/// The console's gateway: whoever has signed in reaches the routes of apps and operators, without their signatures.
extension Router {
    func console(_ request: HTTPRequest, later: LateAnswer) -> HTTPResponse? {
        guard let console else { return .nothing(at: request) }
        switch console.step(request, Self.components(request.path), later: later) {
        case .answer(let response): return response
        case .later: return nil
        case .pass(let path):
            let cuts = path.count > 2 && path[0] == "apps" && ConsoleMask.rooms.contains(path[2])
            let cut = later.changed { ConsoleAPI.guarded(cuts ? ConsoleMask.cut($0) : $0) }
            return resource(request, path, later: cut).map(ConsoleAPI.guarded)
        }
    }

    /// - Parameter path: the components after `/console/api`.
    private func resource(
        _ request: HTTPRequest, _ path: [String], later: LateAnswer
    ) -> HTTPResponse? {
        if path.first == "apps", path.count > 2 {
            guard let app = engine.apps.app(id: path[1]) else { return Self.noApp(path[1]) }
            let rest = Array(path[2...])
            // A participant token is a login, and screens hand out none.
            if rest.first == "sessions", rest.last == "token" { return .error(403, "the console issues no participant tokens") }
            return dispatch(request, app: app, rest, later: later)
        }
        guard request.method == "GET" || request.method == "HEAD" else { return .methodNotAllowed(request, "GET, HEAD") }
        switch path {
        case ["apps"]: return .json(["apps": .array(engine.apps.present.map { listing($0) })])
        case ["ready"]: return readiness.refusal().map { .error(503, $0) } ?? .json(["ready": true])
        case ["metrics"]: return metrics.readAll(later: later)
        case ["cluster"]:
            let cluster = operators.cluster
            Task { later(await cluster.answer()) }
            return nil
        default: return .nothing(at: request)
        }
    }

    /// An app without its secrets.
    private func listing(_ app: App) -> JSONValue {
        [
            "id": .string(app.id), "enabled": .bool(app.isEnabled), "connections": .int(Int64(engine.directory.connectionCount(app))),
        ]
    }
}
