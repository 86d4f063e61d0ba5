package import HubCore
internal import HubCrypto
internal import Synchronization

/// Access to `/metrics`.
package enum MetricsAccess: Sendable, Equatable {
    /// Every client of the port.
    case everybody
    /// Clients with this bearer token.
    case token(String)
    /// Nobody: the port is reachable from other machines, and no token is configured.
    case nobody
}

/// `GET /metrics`: the hub's numbers for Prometheus. Any thread.
///
/// One reading is made at a time. Requests that arrive meanwhile share it, so frequent requests cost little.
package final class MetricsResource: Sendable {
    private let access: MetricsAccess
    /// Makes the text and passes it to `done` once, on any thread.
    private let read: @Sendable (_ done: @escaping @Sendable (String) -> Void) -> Void
    private let others: @Sendable () -> [String: String]
    private let waiting = Mutex<[LateAnswer]>([])

    /// Maximum of requests that wait for one reading.
    static let waitingMax = 64
    /// Prometheus' text format.
    private static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    /// - Parameters:
    ///   - read: makes the text and passes it to `done` once, on any thread.
    ///   - others: the newest texts of the other nodes, by their names.
    package init(
        access: MetricsAccess, read: @escaping @Sendable (_ done: @escaping @Sendable (String) -> Void) -> Void,
        others: @escaping @Sendable () -> [String: String] = { [:] }
    ) {
        self.access = access
        self.read = read
        self.others = others
    }

    /// Answers at once, or returns nil and calls `later` once.
    package func respond(to request: HTTPRequest, later: LateAnswer) -> HTTPResponse? {
        guard request.method == "GET" || request.method == "HEAD" else { return .methodNotAllowed(request, "GET, HEAD") }
        return refusal(of: request) ?? read(later: later)
    }

    /// Answers a reader who may have the numbers, or returns nil and calls `later` once.
    func read(later: LateAnswer) -> HTTPResponse? {
        let place = waiting.withLock { waiting -> Int? in
            guard waiting.count < Self.waitingMax else { return nil }
            waiting.append(later)
            return waiting.count
        }
        guard let place else { return .error(503, "\(Self.waitingMax) requests wait for the metrics already: ask less often") }
        if place == 1 { read { [self] text in answer(text) } }
        return nil
    }

    /// As `read`, with the texts of the other nodes. Each follows a line with the node's name: `# node NAME`.
    func readAll(later: LateAnswer) -> HTTPResponse? {
        let others = others()
        if others.isEmpty { return read(later: later) }
        let all = later.changed { response in
            let rest = others.sorted { $0.key < $1.key }.map { "# node \($0.key)\n\($0.value)" }.joined()
            return HTTPResponse(status: response.status, contentType: Self.contentType, body: response.body + Array(rest.utf8))
        }
        return read(later: all)
    }

    private func answer(_ text: String) {
        let response = HTTPResponse(status: 200, contentType: Self.contentType, body: Array(text.utf8))
        let waiting = waiting.withLock { waiting in
            defer { waiting = [] }
            return waiting
        }
        for later in waiting { later(response) }
    }

    private func refusal(of request: HTTPRequest) -> HTTPResponse? {
        switch access {
        case .everybody: return nil
        case .nobody:
            return .error(403, "this hub can be reached from other machines: set metrics.token in its configuration to read its metrics")
        case .token(let token):
            if let sent = Bearer.token(of: request), constantTimeEquals(Array(sent.utf8), Array(token.utf8)) { return nil }
            return APIError.unauthorized("the metrics have a token: send metrics.token as Authorization: Bearer TOKEN").response
        }
    }
}
