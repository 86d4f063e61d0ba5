internal import HubCore
internal import HubDefinitions
internal import HubDelivery
internal import PusherProtocol

/// `GET /apps/{app}/channels/{channel}/history` and `GET /me/events`: past events with a policy.
///
/// Events without a policy are not kept.
struct HistoryResource: Sendable {
    let store: any DeliveryStore

    /// Events per page.
    static let pageMax = 200
    static let pageUsual = 100
    /// Bytes of data that end a page, however few events it has.
    static let pageDataBytesMax = 1 << 20

    /// The channel's events, for all recipients.
    func channel(_ request: HTTPRequest, app: String, channel text: String) async throws -> HTTPResponse {
        guard request.method == "GET" else { throw APIError.methodNotAllowed(request.method, allowed: ["GET", "HEAD"]) }
        // Direct sends have a history as well, under a name that no channel can have.
        guard text == DirectSend.channel || ChannelName(text) != nil else {
            throw APIError(400, "the channel's name is not allowed: \(ChannelName.rule)")
        }
        let query = PageQuery(request: request)
        let after = try query.number("after", in: 0...Int64.max, otherwise: 0)
        let limit = try query.limit(max: Self.pageMax, otherwise: Self.pageUsual)
        // One event more than requested reveals a further page.
        let found = try await store.history(app: app, channel: text, after: after, limit: limit + 1)
        assert(zip(found, found.dropFirst()).allSatisfy { $0.sequence < $1.sequence }, "the store found \(found.count) events out of order")
        let page = found.prefix(Self.fitting(found.prefix(limit).lazy.map(\.data)))
        return .json([
            "events": .array(page.map { .object(Self.members($0)) }),
            "more": .bool(page.count < found.count),
        ])
    }

    /// The participant's own events, in all channels.
    func own(_ request: HTTPRequest, _ bearer: Bearer) async throws -> HTTPResponse {
        let query = PageQuery(request: request)
        let after = try query.number("after", in: 0...Int64.max, otherwise: 0)
        let limit = try query.limit(max: Self.pageMax, otherwise: Self.pageUsual)
        let user = bearer.participant.user
        let found = try await store.events(app: bearer.app.id, user: user, after: after, limit: limit)
        let page = found.entries.prefix(Self.fitting(found.entries.lazy.map(\.event.data)))
        assert(found.position >= after && found.entries.count <= limit, "the position goes back from \(after) to \(found.position)")
        let isCut = page.count < found.entries.count
        let entries = page.map { entry in
            var members = Self.members(entry.event)
            members["position"] = .int(entry.position)
            members["channel"] = .string(entry.event.channel)
            members["nid"] = .string(NotificationID.make(event: entry.event.id, app: bearer.app.id, user: user))
            return JSONValue.object(members)
        }
        return .json([
            "events": .array(entries),
            "position": .int(isCut ? page.last?.position ?? after : found.position),
            "more": .bool(isCut || found.isMore),
        ])
    }

    /// Number of events that fit a page: at least one.
    private static func fitting(_ data: some Sequence<String>) -> Int {
        var (count, bytes) = (0, 0)
        for text in data {
            bytes += text.utf8.count
            if count > 0, bytes > pageDataBytesMax { break }
            count += 1
        }
        return count
    }

    static func members(_ event: EventRecord) -> [String: JSONValue] {
        [
            "event_id": .string(event.id),
            "sequence": .int(event.sequence),
            "name": .string(event.name),
            "data": .string(event.data),
            "policy": .string(event.policy.rawValue),
            "committed_at": .string(Timestamp.iso8601(milliseconds: event.committedAt)),
            "expires_at": .string(Timestamp.iso8601(milliseconds: event.expiresAt)),
        ]
    }
}
