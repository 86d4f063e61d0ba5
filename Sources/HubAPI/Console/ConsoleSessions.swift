internal import HubCore
internal import HubCrypto
internal import Synchronization

/// Sessions of the console: a signed cookie each, so that every node with the same passwords knows them. Any thread.
final class ConsoleSessions: Sendable {
    /// A session that is in force.
    struct Session: Sendable, Equatable {
        var role: ConsoleRole
        /// Seconds since 1970.
        var expiresAt: Int64
        /// Tells the session from all others.
        var id: String
    }

    /// Life of a session, in seconds.
    static let lifeSeconds: Int64 = 12 * 60 * 60
    /// Sessions that were ended early and are remembered. If exceeded, the first one is forgotten, and its cookie opens again.
    static let endedMax = 1000
    private static let idBytes = 12

    private let key: HMACKey
    /// Other hubs on the same host have cookies of their own, although browsers keep one jar for all ports.
    let cookieName: String
    private let isTLS: Bool
    private let ended = Mutex<[Session]>([])

    init(_ access: ConsoleAccess) {
        key = access.sessionKey
        cookieName = "tandem_console_" + String(Hex.encode(key.code(of: Array("cookie".utf8))).prefix(8))
        isTLS = access.isTLS
    }

    /// Begins a session.
    /// - Parameter now: seconds since 1970.
    func begin(_ role: ConsoleRole, now: Int64) -> Session {
        Session(role: role, expiresAt: now + Self.lifeSeconds, id: Base64URL.encode(SecureRandom.bytes(Self.idBytes)))
    }

    /// The `Set-Cookie` header that hands a session over.
    /// - Parameter request: the sign-in. A browser that reached the hub through a proxy's TLS says so by its origin.
    func cookie(_ session: Session, for request: HTTPRequest) -> (name: String, value: String) {
        header("\(text(session)).\(Hex.encode(code(session)))", maxAge: Self.lifeSeconds, for: request)
    }

    /// The `Set-Cookie` header that makes the browser forget its session.
    func farewell(for request: HTTPRequest) -> (name: String, value: String) { header("", maxAge: 0, for: request) }

    /// The session of a request's cookie; nil without one, or if it is forged, expired or ended.
    /// - Parameter now: seconds since 1970.
    func session(of request: HTTPRequest, now: Int64) -> Session? {
        guard let cookies = request.headers["cookie"] else { return nil }
        for cookie in cookies.split(separator: ";") {
            let parts = cookie.drop { $0 == " " }.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, parts[0] == cookieName else { continue }
            return session(parts[1], now: now)
        }
        return nil
    }

    /// Ends a session before its time.
    func end(_ session: Session, now: Int64) {
        ended.withLock { ended in
            ended.removeAll { $0.expiresAt <= now }
            guard session.expiresAt > now, !ended.contains(session) else { return }
            if ended.count >= Self.endedMax { ended.removeFirst() }
            ended.append(session)
        }
    }

    /// Ends a session of another node.
    /// - Parameter text: as `ended` names it.
    func end(_ text: String, now: Int64) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        if parts.count == 3, let session = Self.session(parts) { end(session, now: now) }
    }

    /// Sessions that were ended before their time, with the seconds since 1970 at which they expire. Without its code no name is a cookie.
    func ended(now: Int64) -> [String: Int64] {
        let ended = ended.withLock { $0.filter { $0.expiresAt > now } }
        return Dictionary(ended.map { (text($0), $0.expiresAt) }, uniquingKeysWith: { first, _ in first })
    }

    private static func session(_ parts: [Substring]) -> Session? {
        guard let role = ConsoleRole(rawValue: String(parts[0])), let expiresAt = Int64(parts[1]) else { return nil }
        return Session(role: role, expiresAt: expiresAt, id: String(parts[2]))
    }

    private func session(_ value: Substring, now: Int64) -> Session? {
        let parts = value.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4, let session = Self.session(parts) else { return nil }
        let expiresAt = session.expiresAt
        guard key.isCode(Array(parts[3].utf8)[...], of: Array(text(session).utf8)), expiresAt > now else { return nil }
        return ended.withLock { $0.contains(session) } ? nil : session
    }

    private func text(_ session: Session) -> String { "\(session.role.rawValue).\(session.expiresAt).\(session.id)" }
    private func code(_ session: Session) -> [UInt8] { key.code(of: Array(text(session).utf8)) }

    private func header(_ value: String, maxAge: Int64, for request: HTTPRequest) -> (name: String, value: String) {
        let isSecure = isTLS || request.headers["origin"]?.hasPrefix("https://") == true
        let path = "/\(ConsoleAPI.root)"
        return (
            "Set-Cookie", "\(cookieName)=\(value); Path=\(path); Max-Age=\(maxAge); HttpOnly; SameSite=Strict\(isSecure ? "; Secure" : "")"
        )
    }
}
