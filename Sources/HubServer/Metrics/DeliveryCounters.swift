internal import HubAPI
internal import HubChannels
internal import HubDefinitions
internal import HubDelivery

/// Counters of delivery's decisions, receipts and effects since the start, for metrics. Updated once per commit and per batch of reports.
struct DeliveryCounters: Sendable {
    /// Publishes that went out after their commit.
    private(set) var published: UInt64 = 0
    private(set) var events: [Policy: UInt64] = [:]
    /// Recipients of events by policy, then by `RecipientNote.code`.
    private(set) var decisions: [Policy: [UInt64]] = [:]
    private(set) var receipts: [ReceiptSource: UInt64] = [:]
    /// Recipients who confirmed an event before they were pushed to.
    private(set) var confirmed: UInt64 = 0
    /// Targets that were pushed to for want of a receipt, by their state at the commit. A target is a recipient, or a device that stands
    /// for itself.
    private(set) var escalations: [String: UInt64] = [:]
    private(set) var replays: UInt64 = 0
    private(set) var replayedEvents: UInt64 = 0

    /// Events with awaited receipts, as of the last turn.
    var openEvents = 0
    /// Targets of these events, as of the last turn.
    var openTargets = 0
    /// Connections to channels with a definition, as of the last turn.
    var attendedConnections = 0

    /// Origin of a receipt.
    enum ReceiptSource: String, CaseIterable {
        /// A WebSocket PONG.
        case pong
        /// A page's `pusher:pong`.
        case application
        /// The app itself, over HTTP.
        case http
    }

    static let codeCount = 256
    /// Label of states that this version does not know.
    static let otherCause = "other"

    mutating func committed(_ batch: DeliveryBook.Batch) {
        for publish in batch.publishes {
            published += UInt64(publish.publish.requests.count)
            for record in publish.records {
                let policy = record.event.policy
                events[policy, default: 0] += 1
                for note in record.recipients?.notes ?? [] {
                    decisions[policy, default: Array(repeating: 0, count: Self.codeCount)][Int(note.code)] += 1
                }
            }
        }
    }

    mutating func heard(_ reports: [LoopReport]) {
        for case .receipt(_, _, let byApplication) in reports { received(byApplication ? .application : .pong) }
    }

    mutating func received(_ source: ReceiptSource) { receipts[source, default: 0] += 1 }

    mutating func planned(_ work: PushPlan.Work) {
        switch work {
        case .push(_, let targets, _):
            for target in targets {
                escalations[DeviceState(rawValue: target.reason)?.rawValue ?? Self.otherCause, default: 0] += 1
            }
        case .confirmed(_, let recipients, _): confirmed += UInt64(recipients.count)
        case .opened, .confirmedLate, .replayed, .late, .closed, .abandoned: break
        }
    }

    /// Notes the state at a turn's end.
    mutating func note(_ book: borrowing DeliveryBook) {
        openEvents = book.escalation.eventCount
        openTargets = book.escalation.targetCount
        attendedConnections = book.attendance.connectionCount
    }

    mutating func replayed(events: Int) {
        replays += 1
        replayedEvents += UInt64(events)
    }
}
