internal import HubChannels
internal import HubCore
internal import HubDelivery
internal import PusherProtocol

/// `POST /apps/{app}/links` makes a link to one trail. `GET /links/trail` reads that trail with the link's token alone.
struct LinksResource: Sendable {
    private let store: any DeliveryStore
    private let trail: TrailResource
    private let time: any TimeSource
    /// Reads at the same time, of all links: whoever has one is no backend, and a trail may be long.
    private let room = Turnstile(places: LinksResource.readsMax)

    static let readsMax = 8
    private static let eventCharactersMax = 100

    init(store: any DeliveryStore, time: any TimeSource) {
        self.store = store
        self.time = time
        trail = TrailResource(store: store)
    }

    /// Makes a link to an event of the app, or to a person.
    func make(_ request: HTTPRequest, app: App) async throws -> HTTPResponse {
        guard request.method == "POST" else { throw APIError.methodNotAllowed(request.method, allowed: ["POST"]) }
        let body = try JSONBody(request.body)
        let event = try body.string("event", charactersMax: Self.eventCharactersMax)?.lowercased()
        let user = try body.string("user", charactersMax: Field.userIDCharactersMax)
        let subject: TrailLink.Subject
        switch (event, user) {
        case (let event?, nil):
            guard try await store.trail(event: event, users: [], from: 0, limit: 1)?.event.app == app.id else {
                throw TrailResource.noSuchEvent(event)
            }
            subject = .event(event)
        case (nil, let user?): subject = .user(try Field.userID(user))
        default: throw APIError(400, "send either event, the id of an event, or user, the id of a person")
        }
        let (token, expiresAt) = TrailLink.issue(app: app, subject, nowSeconds: time.wallSeconds)
        return .json(["token": .string(token), "expires_at": .string(Timestamp.iso8601(milliseconds: expiresAt * 1000))])
    }

    /// Reads the trail of a link.
    func read(_ request: HTTPRequest, apps: AppDirectory) async throws -> HTTPResponse {
        guard request.method == "GET" || request.method == "HEAD" else {
            throw APIError.methodNotAllowed(request.method, allowed: ["GET", "HEAD"])
        }
        guard let token = Bearer.token(of: request),
            let (link, app) = TrailLink.verify(token, apps: apps, nowSeconds: time.wallSeconds)
        else { throw APIError.unauthorized("the link has expired, or is not whole: ask for a new one") }
        guard app.isEnabled else { throw APIError(403, "the app is disabled") }
        guard room.enter() else {
            throw APIError(429, "too many links are being read: try again in a moment", headers: ["Retry-After": "1"])
        }
        defer { room.leave() }
        var request = request
        request.method = "GET"
        return switch link.subject {
        case .event(let event): try await trail.event(request, app: app.id, event: event)
        case .user(let user): try await trail.user(request, app: app.id, user: user)
        }
    }
}
