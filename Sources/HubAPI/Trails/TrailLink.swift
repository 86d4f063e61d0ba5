internal import HubChannels
internal import HubCore
internal import HubJSON
internal import PusherProtocol

/// A bearer token that reads one trail for an hour, and opens nothing else.
struct TrailLink: Equatable {
    /// The trail that it reads.
    enum Subject: Equatable {
        /// All recipients of an event, by its id.
        case event(String)
        /// All events of a person, by the user id.
        case user(String)
    }

    static let lifetimeSeconds: Int64 = 60 * 60
    /// A user id of full length in four-byte characters has 700 bytes in a token.
    static let bytesMax = 2048
    /// Tells it from a participant token, which the same key signs.
    private static let type = "trail"

    /// Id of the app.
    var app: String
    var subject: Subject
    /// Seconds since 1970; the token is void from this second on.
    var expiresAt: Int64

    /// Signs a token of `lifetimeSeconds`.
    static func issue(app: App, _ subject: Subject, nowSeconds: Int64) -> (token: String, expiresAt: Int64) {
        let expiresAt = nowSeconds + lifetimeSeconds
        var payload: [String: JSONValue] = ["app": .string(app.id), "exp": .int(expiresAt)]
        switch subject {
        case .event(let id): payload["event"] = .string(id)
        case .user(let id): payload["user"] = .string(id)
        }
        return (SignedToken.make(.object(payload), type: type, app: app), expiresAt)
    }

    /// The link of a token, and its app; nil if it is none, or has expired.
    static func verify(_ token: String, apps: AppDirectory, nowSeconds: Int64) -> (link: TrailLink, app: App)? {
        guard let (payload, app) = SignedToken.open(token, type: type, bytesMax: bytesMax, apps: apps),
            let expiresAt = payload["exp"]?.intValue, nowSeconds < expiresAt
        else { return nil }
        let subject: Subject
        switch (payload["event"]?.stringValue, payload["user"]?.stringValue) {
        case (let event?, nil): subject = .event(event)
        case (nil, let user?): subject = .user(user)
        default: return nil
        }
        return (TrailLink(app: app.id, subject: subject, expiresAt: expiresAt), app)
    }
}
