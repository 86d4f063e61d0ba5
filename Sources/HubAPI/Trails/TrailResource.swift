internal import HubCore
internal import HubDelivery

/// `GET /apps/{app}/events/{event}/deliveries`: for each recipient the known state, the decision with its reason, and the outcome.
/// `GET /apps/{app}/users/{user}/deliveries`: the same of one person, over their events.
struct TrailResource: Sendable {
    let store: any DeliveryStore

    /// Recipients per page.
    static let pageMax = EventTrail.pageMax
    static let pageUsual = 100
    /// Events per page of one person.
    static let userPageUsual = 20

    /// The recipients of one event.
    func event(_ request: HTTPRequest, app: String, event text: String) async throws -> HTTPResponse {
        try Self.requireGet(request)
        let query = PageQuery(request: request)
        let after = Int(try query.number("after", in: 0...Int64(Int32.max), otherwise: 0))
        let limit = try query.limit(max: Self.pageMax, otherwise: Self.pageUsual)
        let filter = try TrailFilter(request)
        let summarizes = try query.asks(for: "summary", in: "info")
        let id = text.lowercased()
        var outcomes: EventOutcomes?
        if summarizes || !filter.isEmpty {
            outcomes = try await store.outcomes(event: id)
            guard outcomes?.event.app == app else { throw Self.noSuchEvent(text) }
        }
        var (users, next, matched) = (request.parameter("user").map { [$0] }, Int?.none, Int?.none)
        if let outcomes, !filter.isEmpty {
            let page = filter.page(of: outcomes, user: users?.first, from: after, limit: limit)
            (users, next, matched) = (page.users, page.next, page.matched)
        }
        guard let trail = try await store.trail(event: id, users: users, from: after, limit: limit), trail.event.app == app else {
            throw Self.noSuchEvent(text)
        }
        var answer: [String: JSONValue] = [
            "event": RecipientRow.event(trail.event),
            "open": .bool(trail.isOpen),
            "recipients": .int(Int64(trail.recipientCount)),
            "deliveries": .array(trail.recipients.map { RecipientRow.make($0, of: trail) }),
            "next": (filter.isEmpty ? trail.next : next).map { .int(Int64($0)) } ?? .null,
        ]
        if let matched { answer["matched"] = .int(Int64(matched)) }
        if summarizes, let outcomes { answer["summary"] = OutcomeSummary.make(outcomes) }
        return .json(.object(answer))
    }

    /// One person's events, newest first.
    func user(_ request: HTTPRequest, app: String, user text: String) async throws -> HTTPResponse {
        try Self.requireGet(request)
        let user = try Field.userID(text)
        let query = PageQuery(request: request)
        let after = try query.number("after", in: 0...Int64.max, otherwise: Int64.max)
        let limit = try query.limit(max: UserTrail.pageMax, otherwise: Self.userPageUsual)
        let page = try await store.trail(app: app, user: user, before: after, limit: limit)
        let events = page.entries.map { entry -> JSONValue in
            [
                "position": .int(entry.position),
                "event": RecipientRow.event(entry.trail.event),
                "open": .bool(entry.trail.isOpen),
                "recipients": .int(Int64(entry.trail.recipientCount)),
                "delivery": entry.trail.recipients.first.map { RecipientRow.make($0, of: entry.trail) } ?? .null,
            ]
        }
        return .json(["user": .string(user), "events": .array(events), "next": page.next.map { .int($0) } ?? .null])
    }

    private static func requireGet(_ request: HTTPRequest) throws(APIError) {
        guard request.method == "GET" else { throw APIError.methodNotAllowed(request.method, allowed: ["GET", "HEAD"]) }
    }

    static func noSuchEvent(_ text: String) -> APIError {
        APIError(
            404,
            "there is no event \(APIError.quoted(text)): use the event_id that publishing answered; only events with a policy have one")
    }
}
