internal import HubCore
internal import HubDelivery

/// `GET /apps/{app}/events`: the newest events with a policy, over all channels or of one.
struct RecentEventsResource: Sendable {
    private let store: any DeliveryStore
    private let counted: CountedEvents

    static let pageUsual = 20
    /// Events of a page whose recipients are counted: each costs a row per push.
    static let countedMax = 25

    init(store: any DeliveryStore, time: any TimeSource) {
        self.store = store
        counted = CountedEvents(time: time)
    }

    func respond(to request: HTTPRequest, app: String) async throws -> HTTPResponse {
        guard request.method == "GET" else { throw APIError.methodNotAllowed(request.method, allowed: ["GET", "HEAD", "POST"]) }
        let query = PageQuery(request: request)
        let counts = try query.asks(for: "counts", in: "info")
        let asked = try query.limit(max: EventSearch.pageMax, otherwise: Self.pageUsual)
        let limit = counts ? min(asked, Self.countedMax) : asked
        let search = EventSearch(
            app: app, channel: request.parameter("channel"), name: request.parameter("name"),
            after: request.parameter("after")?.lowercased())
        let found = try await store.newestEvents(search, limit: limit)
        var events: [JSONValue] = []
        for event in found.events {
            guard counts, let found = try await count(event.id) else {
                events.append(RecipientRow.event(event))
                continue
            }
            var members = RecipientRow.event(event).objectValue ?? [:]
            members["recipients"] = .int(Int64(found.recipients))
            members["open"] = .bool(found.isOpen)
            members["counts"] = found.states
            events.append(.object(members))
        }
        return .json(["events": .array(events), "next": JSONValue(orNull: found.next)])
    }

    private func count(_ event: String) async throws -> CountedEvents.Counts? {
        if let known = counted[event] { return known }
        guard let outcomes = try await store.outcomes(event: event) else { return nil }
        let counts = CountedEvents.Counts(
            recipients: outcomes.recipients.count, isOpen: outcomes.isOpen, states: OutcomeSummary.states(outcomes))
        counted.keep(counts, of: event)
        return counts
    }
}
