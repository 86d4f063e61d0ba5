internal import HubAPI
internal import HubChannels
internal import HubDelivery

/// What delivery has decided, heard and done since the start, for metrics: noted once for each commit and each batch of reports.
struct DeliveryCounters: Sendable {
    /// Publishes that were let out.
    private(set) var published: UInt64 = 0
    private(set) var events: [Policy: UInt64] = [:]
    /// Recipients of events by what was known and decided of them: by the event's policy, then by `RecipientNote.code`.
    private(set) var decisions: [Policy: [UInt64]] = [:]
    private(set) var receipts: [ReceiptSource: UInt64] = [:]
    /// Recipients who confirmed an event before they were pushed to.
    private(set) var confirmed: UInt64 = 0
    /// Recipients, or devices that stand for themselves, who were pushed to because no receipt came: by what had been known of them.
    private(set) var escalations: [String: UInt64] = [:]
    private(set) var replays: UInt64 = 0
    private(set) var replayedEvents: UInt64 = 0

    /// Events that somebody has not confirmed, and how many that are; as of the last turn, like those below.
    var openEvents = 0
    var openTargets = 0
    /// Connections to channels that have a definition.
    var attendedConnections = 0

    /// From where a receipt came.
    enum ReceiptSource: String, CaseIterable {
        /// A WebSocket PONG.
        case pong
        /// A page's `pusher:pong`.
        case application
        /// The app itself, over HTTP.
        case http
    }

    static let codeCount = 256
    /// For causes that this version does not know.
    static let otherCause = "other"

    mutating func committed(_ publishes: [PreparedPublish]) {
        for publish in publishes {
            published += UInt64(publish.command.requests.count)
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

    mutating func carriedOut(_ effects: [Escalation.Effect]) {
        for effect in effects {
            switch effect {
            case .push(_, let targets, _):
                for target in targets {
                    escalations[DeviceState(rawValue: target.reason)?.rawValue ?? Self.otherCause, default: 0] += 1
                }
            case .confirmed(_, let recipients): confirmed += UInt64(recipients.count)
            case .prove, .answered, .closed: break
            }
        }
    }

    mutating func replayed(events: Int) {
        replays += 1
        replayedEvents += UInt64(events)
    }
}
