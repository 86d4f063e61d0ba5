internal import HubCore
internal import HubDelivery
internal import HubJSON

/// `GET /apps/{app}/scheduled` and `GET|DELETE /apps/{app}/scheduled/{id}`: scheduled events.
struct ScheduledResource: Sendable {
    let store: any DeliveryStore
    let time: any TimeSource

    /// Publishes per page.
    static let pageMax = 1_000
    static let pageUsual = 100

    /// Waiting publishes, the earliest first; with `state=failed` the ones refused at their time, the latest first.
    func respondToList(_ request: HTTPRequest, app: String) async throws -> HTTPResponse {
        guard request.method == "GET" else { throw APIError.methodNotAllowed(request.method, allowed: ["GET", "HEAD"]) }
        let limit = try PageQuery(request: request).limit(max: Self.pageMax, otherwise: Self.pageUsual)
        switch request.parameter("state") ?? ScheduledPublish.State.waiting.rawValue {
        case ScheduledPublish.State.waiting.rawValue: break
        case ScheduledPublish.State.failed.rawValue:
            let failed = try await store.failedScheduled(app: app, limit: limit)
            return .json(["scheduled": .array(failed.map(Self.answer)), "next": .null])
        default: throw APIError(400, "state must be waiting or failed")
        }
        let found = try await store.scheduled(app: app, after: try Self.cursor(request), limit: limit + 1)
        assert(found.count <= limit + 1, "the store found \(found.count) publishes, at most \(limit + 1) were asked for")
        let page = found.prefix(limit)
        let next = found.count > limit ? page.last.map { JSONValue.string("\($0.deliverAt)_\($0.id)") } : nil
        return .json(["scheduled": .array(page.map(Self.answer)), "next": next ?? .null])
    }

    func respond(to request: HTTPRequest, app: String, id: String) async throws -> HTTPResponse {
        let id = id.lowercased()
        switch request.method {
        case "GET":
            guard let found = try await store.scheduled(app: app, id: id) else {
                throw APIError(404, "no event is scheduled as \(APIError.quoted(id)): use the scheduled_id that publishing answered")
            }
            return .json(Self.answer(found))
        case "DELETE":
            switch try await store.cancelScheduled(app: app, id: id, now: time.wallMilliseconds) {
            case .waiting: return .json([:])
            case nil: throw APIError(404, "no event is scheduled as \(APIError.quoted(id)): use the scheduled_id that publishing answered")
            case .published: throw APIError(404, "the event was published already: it cannot be cancelled any more")
            case .cancelled: throw APIError(404, "the event was cancelled already")
            case .failed: throw APIError(404, "the event was refused when its time came: there is nothing to cancel")
            }
        default: throw APIError.methodNotAllowed(request.method, allowed: ["GET", "DELETE", "HEAD"])
        }
    }

    private static func cursor(_ request: HTTPRequest) throws(APIError) -> (deliverAt: Int64, id: String)? {
        guard let text = request.parameter("after") else { return nil }
        let parts = text.split(separator: "_", maxSplits: 1)
        guard parts.count == 2, let deliverAt = Int64(parts[0]) else {
            throw APIError(400, "after must be the next of an answer before")
        }
        return (deliverAt, String(parts[1]))
    }

    private static func answer(_ publish: ScheduledPublish) -> JSONValue {
        func time(_ milliseconds: Int64?) -> JSONValue {
            milliseconds.map { .string(Timestamp.iso8601(milliseconds: $0)) } ?? .null
        }
        var members: [String: JSONValue] = [
            "scheduled_id": .string(publish.id), "deliver_at": time(publish.deliverAt), "created_at": time(publish.createdAt),
            "state": .string(publish.state.rawValue),
        ]
        if publish.state != .waiting { members["ended_at"] = time(publish.endedAt) }
        switch publish.state {
        case .waiting:
            // The stored text. Unreadable text is refused at its time, with a reason.
            let request = (try? JSONValue(parsing: publish.request)) ?? .null
            for name in ["name", "channels", "data"] { members[name] = request[name] ?? .null }
        case .published:
            let events = publish.outcome?.split(separator: ",").map { JSONValue.string(String($0)) } ?? []
            members["event_ids"] = .array(events)
        case .failed: members["error"] = JSONValue(orNull: publish.outcome)
        case .cancelled: break
        }
        return .object(members)
    }
}
