package import HubCore
internal import HubJSON

/// A request for the console after the checks that need no app.
enum ConsoleStep {
    case answer(HTTPResponse)
    /// The answer comes through the request's `later`.
    case later
    /// Somebody who has signed in asks the API.
    /// - Parameter path: the components after `/console/api`.
    case pass(path: [String])
}

/// The console below `/console`: its files, its sign-in, and the check of every request for its API. One value serves all loops, because
/// each loop would count tries for itself otherwise. Any thread.
package final class ConsoleAPI: Sendable {
    /// First component of every path.
    static let root = "console"
    /// Header of every request that is no GET. A page of another origin cannot send it without being asked first.
    static let mark = "x-tandem-console"
    private static let front = "/console"

    private let access: ConsoleAccess
    private let sessions: ConsoleSessions
    private let door: ConsoleDoor
    private let time: any TimeSource

    /// A console with at least one way in.
    package init(_ access: ConsoleAccess, time: any TimeSource) {
        self.access = access
        self.time = time
        sessions = ConsoleSessions(access)
        door = ConsoleDoor(access, time: time)
    }

    /// Sessions that were signed out before their time, with the seconds since 1970 at which they expire. Nobody can sign in by them.
    /// - Parameter now: seconds since 1970.
    package func signedOut(now: Int64) -> [String: Int64] { sessions.ended(now: now) }

    /// Refuses sessions that were signed out on other nodes.
    /// - Parameter now: seconds since 1970.
    package func noteSignedOut(_ sessions: [String], now: Int64) {
        let known = signedOut(now: now)
        for text in sessions where known[text] == nil { self.sessions.end(text, now: now) }
    }

    /// Whether a path is the console's.
    static func owns(_ path: String) -> Bool {
        guard path.utf8.starts(with: front.utf8) else { return false }
        return path.utf8.count == front.utf8.count || path.utf8.dropFirst(front.utf8.count).first == UInt8(ascii: "/")
    }

    /// Answers a request, or says that the API may.
    /// - Parameter path: its components; the first one is `root`.
    func step(_ request: HTTPRequest, _ path: [String], later: LateAnswer) -> ConsoleStep {
        guard path.count > 1, path[1] == "api" else { return .answer(Self.guarded(file(request, path))) }
        do throws(APIError) {
            try Self.requireOwnPage(request)
            if path.count == 3, path[2] == "session" {
                return try session(request, later: later.changed(by: Self.guarded)).map { .answer(Self.guarded($0)) } ?? .later
            }
            guard let session = sessions.session(of: request, now: time.wallSeconds) else { throw signedOut }
            guard Self.isRead(request) || session.role == .operator else {
                throw APIError(403, "viewers may look and not act: sign in with the operator's password")
            }
            return .pass(path: Array(path.dropFirst(2)))
        } catch {
            return .answer(Self.guarded(error.response))
        }
    }

    private func file(_ request: HTTPRequest, _ path: [String]) -> HTTPResponse {
        // Without the slash the page's relative addresses would point outside of it.
        if request.path == Self.front { return HTTPResponse(status: 301, body: [], headers: [("Location", "\(Self.front)/")]) }
        return ConsoleFiles.respond(to: request, name: path.dropFirst().joined(separator: "/")) ?? .nothing(at: request)
    }

    // MARK: Sessions

    private var signedOut: APIError {
        let way =
            access.hasPassword
            ? "sign in with a password of the console"
            : "open the link that the hub printed at its start, which works once; start the hub again for another one"
        return APIError(401, "nobody has signed in, or the session is over: \(way)")
    }

    /// Nil: the answer comes through `later`.
    private func session(_ request: HTTPRequest, later: LateAnswer) throws(APIError) -> HTTPResponse? {
        let now = time.wallSeconds
        switch request.method {
        case "GET", "HEAD":
            guard let session = sessions.session(of: request, now: now) else { throw signedOut }
            return Self.answer(session)
        case "DELETE":
            if let session = sessions.session(of: request, now: now) { sessions.end(session, now: now) }
            return HTTPResponse(status: 200, body: Array("{}".utf8), headers: [sessions.farewell(for: request)])
        case "POST": return try signIn(request, later: later)
        default: throw APIError.methodNotAllowed(request.method, allowed: ["GET", "HEAD", "POST", "DELETE"])
        }
    }

    private func signIn(_ request: HTTPRequest, later: LateAnswer) throws(APIError) -> HTTPResponse? {
        try door.count(request.remoteAddress)
        let body = try JSONBody(request.body)
        if let ticket = try body.string("ticket", charactersMax: 200) {
            guard door.opens(ticket: ticket) else {
                throw APIError(401, "this link was used before, or is of another start of the hub: start it again for another one")
            }
            return begin(.operator, request)
        }
        guard let password = try body.string("password", charactersMax: 1000) else { throw APIError(400, "password is missing") }
        guard access.hasPassword else { throw signedOut }
        try door.role(password: password) { [self] role in
            later(role.map { begin($0, request) } ?? .error(401, "the password is wrong"))
        }
        return nil
    }

    private func begin(_ role: ConsoleRole, _ request: HTTPRequest) -> HTTPResponse {
        let session = sessions.begin(role, now: time.wallSeconds)
        var response = Self.answer(session)
        response.headers.append(sessions.cookie(session, for: request))
        return response
    }

    private static func answer(_ session: ConsoleSessions.Session) -> HTTPResponse {
        .json([
            "role": .string(session.role.rawValue),
            "expires_at": .string(Timestamp.iso8601(milliseconds: session.expiresAt * 1000)),
        ])
    }

    // MARK: Requests of other pages

    private static func isRead(_ request: HTTPRequest) -> Bool { request.method == "GET" || request.method == "HEAD" }

    /// Refuses requests that another page made a browser send. SameSite keeps the cookie away from other sites; other ports of the same
    /// host are the same site.
    private static func requireOwnPage(_ request: HTTPRequest) throws(APIError) {
        let isRead = isRead(request)
        // Browsers set it, and no page can (Fetch Metadata, W3C).
        let site = request.headers["sec-fetch-site"]
        let isOwn =
            if let site {
                site == "same-origin" || isRead && site == "none"
            } else if let origin = request.headers["origin"] {
                request.headers["host"].map { origin == "http://\($0)" || origin == "https://\($0)" } ?? false
            } else {
                // No browser of today; the mark below is still asked for.
                true
            }
        guard isOwn else { throw APIError(403, "this request comes from another page: the console answers its own page only") }
        guard isRead || request.headers[mark] == "1" else {
            throw APIError(403, "the header X-Tandem-Console is missing: send it with the value 1")
        }
    }

    /// The answer with the headers that keep other pages and injected code out.
    static func guarded(_ response: HTTPResponse) -> HTTPResponse {
        var response = response
        response.headers += headers
        if !response.headers.contains(where: { $0.name == "Cache-Control" }) { response.headers.append(("Cache-Control", "no-store")) }
        return response
    }

    private static let headers: [(name: String, value: String)] = [
        (
            "Content-Security-Policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
                + "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
        ),
        ("X-Frame-Options", "DENY"), ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Opener-Policy", "same-origin"), ("Cross-Origin-Resource-Policy", "same-origin"),
    ]
}
