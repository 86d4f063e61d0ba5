internal import HubCore
internal import HubDelivery

/// `GET /apps/{app}/events/{event}/deliveries`: for each recipient the known state, the decision with its reason, and the outcome.
/// People and devices appear by id: never by a token or an e-mail.
struct TrailResource: Sendable {
    let store: any DeliveryStore

    /// Recipients per page.
    static let pageMax = EventTrail.pageMax
    static let pageUsual = 100

    func respond(to request: HTTPRequest, app: String, event id: String) async throws -> HTTPResponse {
        guard request.method == "GET" else { throw APIError.methodNotAllowed(request.method, allowed: ["GET", "HEAD"]) }
        let query = PageQuery(request: request)
        let after = try query.number("after", in: 0...Int64(Int32.max), otherwise: 0)
        let limit = try query.limit(max: Self.pageMax, otherwise: Self.pageUsual)
        let user = request.parameter("user")
        guard let trail = try await store.trail(event: id.lowercased(), user: user, from: Int(after), limit: limit), trail.event.app == app
        else {
            throw APIError(
                404,
                "there is no event \(APIError.quoted(id)): use the event_id that publishing answered; only events with a policy have one")
        }
        var event = HistoryResource.members(trail.event)
        event["data"] = nil
        event["channel"] = .string(trail.event.channel)
        return .json([
            "event": .object(event),
            "open": .bool(trail.isOpen),
            "recipients": .int(Int64(trail.recipientCount)),
            "deliveries": .array(trail.recipients.map { Self.row($0, of: trail) }),
            "next": trail.next.map { .int(Int64($0)) } ?? .null,
        ])
    }

    private static func row(_ recipient: EventTrail.Recipient, of trail: EventTrail) -> JSONValue {
        [
            "user": .string(recipient.user),
            "nid": .string(NotificationID.make(event: trail.event.id, app: trail.event.app, user: recipient.user)),
            "known": JSONValue(orNull: recipient.note?.state?.rawValue),
            "decision": JSONValue(orNull: recipient.note?.choice.word),
            "why": .string(recipient.why),
            "confirmed_at": recipient.confirmedAt.map { .string(Timestamp.iso8601(milliseconds: $0)) } ?? .null,
            "state": .string(recipient.state(isOpen: trail.isOpen)),
            "pushes": .array(recipient.deliveries.filter { !$0.record.device.isEmpty }.map(push)),
        ]
    }

    private static func push(_ delivery: EventTrail.Delivery) -> JSONValue {
        let record = delivery.record
        return [
            "device": .string(record.device),
            "purpose": .string(record.purpose.rawValue),
            "state": .string(record.state.rawValue),
            "why": .string(record.reason),
            "due_at": .string(Timestamp.iso8601(milliseconds: record.dueAt)),
            "attempts": .int(Int64(record.attempts)),
            "answers": .array(delivery.attempts.map(attempt)),
            "outcome": JSONValue(orNull: record.outcome),
            "provider_id": JSONValue(orNull: record.providerID),
        ]
    }

    static func attempt(_ attempt: DeliveryAttempt) -> JSONValue {
        [
            "attempt": .int(Int64(attempt.number)),
            "started_at": .string(Timestamp.iso8601(milliseconds: attempt.startedAt)),
            "ended_at": .string(Timestamp.iso8601(milliseconds: attempt.endedAt)),
            "answer": .string(attempt.answer),
        ]
    }
}

extension EventTrail.Recipient {
    /// The recipient's state in one word.
    func state(isOpen: Bool) -> String {
        if isConfirmed { return "confirmed" }
        let states = deliveries.filter { $0.record.purpose == .notification }.map(\.record.state)
        // The best of several devices decides, because the person has seen that one.
        if states.contains(.accepted) { return "pushed" }
        if states.contains(where: PushState.open.contains) { return "pushing" }
        let ended = deliveries.filter { $0.record.purpose == .notification && $0.record.outcome != Redirection.replaced }
        if let end = ended.first?.record.state ?? states.first { return end.rawValue }
        switch note?.choice {
        case .awaited: return isOpen ? "awaited" : "closed"
        case .socketOnly, .seen: return PushState.socket.rawValue
        case .pushed: return "pushing"
        case .actor: return PushState.cancelled.rawValue
        case .expired: return PushState.expired.rawValue
        case .noDevice, .noToken, .permissionDenied, .tokenTooOld: return PushState.undeliverable.rawValue
        default: return "skipped"
        }
    }

    /// Reason of the decision, as a sentence.
    var why: String {
        guard let note else { return deliveries.first?.record.reason ?? "not known any more" }
        let known = note.state.map { " (\($0.rawValue))" } ?? ""
        return switch note.choice {
        case .socketOnly: "the policy means the socket only"
        case .awaited: "may be reached by the socket\(known): pushed to without a receipt in time"
        case .pushed: "not surely reached by the socket\(known), or the policy asks for a push in any case: pushed to at once"
        case .seen: "has the app open\(known), and no device that a push could reach"
        case .actor: "caused the event"
        case .expired: "the event had expired"
        case .noDevice: "has no device"
        case .noToken: "has no device with a token"
        case .permissionDenied: "allows no notifications"
        case .tokenTooOld: "has no device whose app told its token lately"
        case .quietHoursDelayed: "quiet hours: told when they end"
        case .quietHoursDropped: "quiet hours: not told"
        case .muted: "has muted it"
        case .capped: "had their share of alerts"
        case .silentBudget: "the device had its share of silent pushes"
        case .superseded: "something newer or stronger of the same group was under way"
        case .other: "decided by a newer version"
        }
    }
}

extension RecipientNote.Choice {
    /// Name of the value in answers.
    var word: String {
        switch self {
        case .socketOnly: "socket_only"
        case .awaited: "await_receipt"
        case .pushed: "push"
        case .seen: "seen"
        case .actor: "actor"
        case .expired: "expired"
        case .noDevice: "no_device"
        case .noToken: "no_token"
        case .permissionDenied: "permission_denied"
        case .tokenTooOld: "token_too_old"
        case .quietHoursDelayed: "quiet_hours_delayed"
        case .quietHoursDropped: "quiet_hours_dropped"
        case .muted: "muted"
        case .capped: "capped"
        case .silentBudget: "silent_budget"
        case .superseded: "superseded"
        case .other: "other"
        }
    }
}
