internal import GatewaySimulators
internal import HubCore
internal import HubJSON

/// The server of the demo's page: its files, the stage as JSON, and what the page asks for.
final class PageServer: Sendable {
    /// A thing that the page can ask for.
    enum Wish: Sendable, Equatable {
        /// The quiz master asks the next question.
        case ask
        case kill, restart
        /// A phone's network changes.
        case network(phone: String, RelayMode)
        /// A phone's app was closed: its connections end.
        case cut(phone: String)
        /// A phone's app has the question on its screen.
        case read(phone: String, number: Int, isLive: Bool)
        /// A phone's app has taken its own notification away.
        case dismissed(phone: String, number: Int)

        /// Nil: not one of these.
        init?(_ json: JSONValue) {
            let phone = json["phone"]?.stringValue
            let number = json["number"]?.intValue.flatMap { Int(exactly: $0) }
            switch (json["wish"]?.stringValue, phone, number) {
            case ("ask", _, _): self = .ask
            case ("kill", _, _): self = .kill
            case ("restart", _, _): self = .restart
            case ("network", let phone?, _):
                guard let mode = json["mode"]?.stringValue.flatMap(RelayMode.init) else { return nil }
                self = .network(phone: phone, mode)
            case ("cut", let phone?, _): self = .cut(phone: phone)
            case ("read", let phone?, let number?): self = .read(phone: phone, number: number, isLive: json["live"]?.boolValue == true)
            case ("dismissed", let phone?, let number?): self = .dismissed(phone: phone, number: number)
            default: return nil
            }
        }
    }

    /// The page's address, with the token in it.
    let url: String
    /// `http://127.0.0.1:` and the port: the origin of the pages.
    let origin: String
    private let server: PlainServer

    /// Serves from now on.
    /// - Parameters:
    ///   - token: the first part of every path.
    ///   - port: 0 for one chosen by the system.
    ///   - relays: ports of the phones' networks.
    ///   - state: the stage as JSON.
    ///   - app: the settings of a phone's app; nil before the hub has them, or for a stranger's phone.
    ///   - perform: carries a wish out, or begins to. All three run on the server's thread.
    init(
        token: String, port: UInt16, relays: [UInt16], state: @escaping @Sendable () -> JSONValue,
        app: @escaping @Sendable (_ phone: String) -> JSONValue?, perform: @escaping @Sendable (Wish) -> Void
    ) throws(GatewayError) {
        // The port is known once the server listens, and the first request comes later.
        let guarded = Guarded<PageGuard?>(nil)
        server = try PlainServer(host: "127.0.0.1", port: port, purpose: "the demo's page (--port)") { request in
            guard let gate = guarded.withLock({ $0 }) else { return .error(503, "the demo is about to start") }
            switch gate.path(of: request) {
            case .failure(let refusal): return refusal.response
            case .success(let path):
                switch (request.method, path) {
                case ("GET", "state"): return Self.fresh(.json(state()))
                case ("POST", "wish"):
                    guard let json = try? JSONValue(parsing: request.body), let wish = Wish(json) else {
                        return .error(400, "no such wish")
                    }
                    perform(wish)
                    return .json([:])
                case ("GET", let path) where path.hasPrefix("settings/"):
                    guard let settings = app(String(path.dropFirst("settings/".count))) else { return .error(404, "no such phone yet") }
                    return Self.fresh(.json(settings))
                case ("GET", let path), ("HEAD", let path):
                    return PageFiles.response(path, relays: relays) ?? PageGuard.Refusal.unknown.response
                default: return .error(405, "the page reads, and sends its wishes")
                }
            }
        }
        let gate = PageGuard(token: token, port: server.port)
        guarded.withLock { $0 = gate }
        origin = "http://127.0.0.1:\(server.port)"
        url = "\(origin)/\(token)/"
    }

    func stop() { server.stop() }

    private static func fresh(_ response: HTTPResponse) -> HTTPResponse {
        var response = response
        response.headers += [("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")]
        return response
    }
}
