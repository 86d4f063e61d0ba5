internal import HubChannels
internal import HubCore
internal import PusherProtocol

/// `POST /apps/{app}/users/{user}/terminate_connections` (docs/protocol.md, 5.7).
struct UsersResource {
    let engine: ChannelEngine

    /// Ends the user's signed-in connections. Succeeds even if there are none.
    func terminate(_ request: HTTPRequest, app: App, user: String, later: LateAnswer) -> HTTPResponse? {
        guard request.method == "POST" else { return .methodNotAllowed(request, "POST") }
        guard user.unicodeScalars.count <= UserLimits().userIDCharactersMax else {
            return .error(400, "a user id has at most \(UserLimits().userIDCharactersMax) characters")
        }
        guard let nodes = engine.nodes else {
            engine.terminate(app: app, user: user)
            return .json([:])
        }
        nodes.terminate(app: app, user: user) { isDone in
            later(isDone ? .json([:]) : .error(503, "a node of the hub has not answered: try again in a moment"))
        }
        return nil
    }

    /// The user in `/users/{user}/terminate_connections`, a path of the Python library without `/apps/{app}`; nil for every other path.
    /// An id may contain slashes, which arrive decoded.
    static func userWithoutApp(_ components: [String]) -> String? {
        guard components.last == "terminate_connections", let users = components.firstIndex(of: "users"), users + 2 < components.count
        else { return nil }
        if let apps = components.firstIndex(of: "apps"), apps < users { return nil }
        return components[(users + 1)..<(components.count - 1)].joined(separator: "/")
    }
}
