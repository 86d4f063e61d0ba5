internal import HubDefinitions
internal import HubDelivery

/// Counters of delivery's decisions and receipts.
extension MetricsText {
    /// - Parameter waiting: messages in delivery's inbox.
    mutating func delivery(_ figures: DeliveryCounters, waiting: Int) {
        counter(
            "tandem_events_total", "Events that were committed, by the strictest policy that applied to somebody.",
            Policy.allCases.map { Sample(figures.events[$0, default: 0], [("policy", $0.rawValue)]) })
        counter(
            "tandem_decisions_total",
            "Recipients of events: the event's policy, how surely the socket reached them when it was committed, and what was decided.",
            Policy.allCases.flatMap { policy in
                (figures.decisions[policy] ?? []).enumerated().filter { $0.element > 0 }.map { code, count in
                    let note = RecipientNote(code: UInt8(clamping: code))
                    return Sample(
                        count,
                        [("policy", policy.rawValue), ("reach", note.state?.rawValue ?? "unknown"), ("decision", note.choice.word)])
                }
            })
        counter(
            "tandem_receipts_total", "Answers of clients that say what they have read: by PONG, by pusher:pong, over HTTP.",
            DeliveryCounters.ReceiptSource.allCases.map { Sample(figures.receipts[$0, default: 0], [("by", $0.rawValue)]) })
        counter("tandem_confirmed_total", "Recipients who confirmed an event in time, so that no push was made.", figures.confirmed)
        counter(
            "tandem_escalations_total", "Recipients who were pushed to because no receipt came, by how surely the socket had reached them.",
            (DeviceState.allCases.map(\.rawValue) + [DeliveryCounters.otherCause]).map {
                Sample(figures.escalations[$0, default: 0], [("reach", $0)])
            })
        counter("tandem_replays_total", "Connections that were sent what their users had missed.", figures.replays)
        counter("tandem_replayed_events_total", "Events that were sent once more to users who came back.", figures.replayedEvents)
        gauge("tandem_awaited_events", "Events that somebody has not confirmed yet.", figures.openEvents)
        gauge("tandem_awaited_receipts", "Receipts that are waited for.", figures.openTargets)
        gauge("tandem_attended_connections", "Connections to channels that have a definition.", figures.attendedConnections)
        gauge("tandem_delivery_queue", "Publishes, reports and questions that wait for delivery.", waiting)
    }
}

extension RecipientNote.Choice {
    /// Label of the choice.
    var word: String {
        switch self {
        case .socketOnly: "socket_only"
        case .awaited: "awaited"
        case .pushed: "pushed"
        case .seen: "seen"
        case .actor: "actor"
        case .expired: "expired"
        case .noDevice: "no_device"
        case .noToken: "no_token"
        case .permissionDenied: "permission_denied"
        case .quietHoursDelayed: "quiet_hours_delayed"
        case .quietHoursDropped: "quiet_hours_dropped"
        case .muted: "muted"
        case .capped: "capped"
        case .silentBudget: "silent_budget"
        case .superseded: "superseded"
        case .tokenTooOld: "token_too_old"
        case .other: "other"
        }
    }
}
