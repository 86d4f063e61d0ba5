internal import HubCore
internal import HubDelivery

/// One recipient of an event in an answer. People and devices appear by id: never by a token or an e-mail.
enum RecipientRow {
    static func make(_ recipient: EventTrail.Recipient, of trail: EventTrail) -> JSONValue {
        let committedAt = trail.event.committedAt
        let (pushes, unreached) = (recipient.deliveries.filter(\.hasDevice), recipient.deliveries.first { !$0.hasDevice }?.record)
        return [
            "user": .string(recipient.user),
            "nid": .string(NotificationID.make(event: trail.event.id, app: trail.event.app, user: recipient.user)),
            "known": JSONValue(orNull: recipient.note?.state?.rawValue),
            "decision": JSONValue(orNull: recipient.note?.choice.word),
            "why": .string(recipient.why),
            "confirmed_at": recipient.confirmedAt.map { .string(Timestamp.iso8601(milliseconds: $0)) } ?? .null,
            "receipt_ms": recipient.confirmedAt.map { .int($0 - committedAt) } ?? .null,
            "state": .string(recipient.state(isOpen: trail.isOpen).rawValue),
            "outcome": JSONValue(orNull: unreached?.unreachedBecause ?? recipient.noted),
            "outcome_ms": unreached.map { .int($0.dueAt - committedAt) } ?? (recipient.noted == nil ? .null : 0),
            "pushes": .array(pushes.map { push($0, committedAt: committedAt) }),
        ]
    }

    private static func push(_ delivery: EventTrail.Delivery, committedAt: Int64) -> JSONValue {
        let record = delivery.record
        let acceptedAt = record.state == .accepted ? delivery.attempts.last?.endedAt : nil
        return [
            "device": .string(record.device),
            "purpose": .string(record.purpose.rawValue),
            "state": .string(record.state.rawValue),
            "why": .string(record.reason),
            "due_at": .string(Timestamp.iso8601(milliseconds: record.dueAt)),
            "due_ms": .int(record.dueAt - committedAt),
            "accepted_ms": acceptedAt.map { .int($0 - committedAt) } ?? .null,
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

    /// The event of a trail, without its data.
    static func event(_ event: EventRecord) -> JSONValue {
        var members = HistoryResource.members(event)
        members["data"] = nil
        members["channel"] = .string(event.channel)
        return .object(members)
    }
}

extension EventTrail.Delivery {
    /// False for a row that says why nothing could be pushed.
    fileprivate var hasDevice: Bool { !record.device.isEmpty }
}

extension PushRecord {
    /// Reason of a row without a device. The reason of an expired one is that of its wait, and explains nothing.
    fileprivate var unreachedBecause: String { state == .expired ? state.rawValue : reason }
}

extension EventTrail.Recipient {
    /// Why nothing was pushed, where the decision at the commit was the end. Earlier versions wrote a row for it.
    fileprivate var noted: String? { deliveries.isEmpty ? note?.choice.reason : nil }

    /// Reason of the decision, as a sentence.
    var why: String { note?.why ?? deliveries.first?.record.reason ?? "not known any more" }
}

extension RecipientNote {
    /// Reason of the decision, as a sentence.
    var why: String {
        let known = state.map { " (\($0.rawValue))" } ?? ""
        return switch choice {
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
