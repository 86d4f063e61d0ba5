package import HubChannels
internal import HubCore
package import HubDelivery
package import PusherProtocol

/// Takes events for channels with a definition, and events whose answer is to be kept. Recipients and surfaces are decided there,
/// and durable parts are committed. Any thread.
package protocol EventPort: Sendable {
    /// Whether some definition's pattern matches the channel. Cheap if none does.
    func isDefined(_ channel: ChannelName) -> Bool
    /// Takes a publish. False if too many are waiting; `respond` is never called then.
    func submit(_ command: PublishCommand) -> Bool
}

/// One publish request, fully validated. Channels without a definition are accepted as well.
package struct PublishCommand: Sendable {
    package var app: App
    /// One for `/events`, several for `/batch_events`; in order.
    package var requests: [PublishRequest]
    package var purpose: PublishPurpose
    /// Arrival in nanoseconds of the monotonic clock; 0: latency is not measured.
    package var arrivedAt: UInt64
    /// For a publish with an idempotency key: makes the answer, which is committed in the same transaction as the events.
    package var answer: (@Sendable ([PublishOutcome]) -> AnswerRecord)?
    /// Called once, from any thread: the outcome per request, or the reason why nothing was published.
    package var respond: @Sendable (Result<[PublishOutcome], PublishRefusal>) -> Void

    package init(
        app: App, requests: [PublishRequest], purpose: PublishPurpose = .publish, arrivedAt: UInt64 = 0,
        answer: (@Sendable ([PublishOutcome]) -> AnswerRecord)? = nil,
        respond: @escaping @Sendable (Result<[PublishOutcome], PublishRefusal>) -> Void
    ) {
        self.app = app
        self.requests = requests
        self.purpose = purpose
        self.arrivedAt = arrivedAt
        self.answer = answer
        self.respond = respond
    }
}

/// Purpose of a publish.
package enum PublishPurpose: Sendable, Equatable {
    /// Decide, commit and send.
    case publish
    /// Decide only, to find refusals. Nothing is committed or sent, and the outcomes are meaningless.
    case trial
    /// `publish` for a scheduled event, whose row ends in the same transaction. Refused with `PublishRefusal.notWaiting` if the row no
    /// longer waits.
    case scheduled(id: String)
}

/// Outcome of one accepted publish.
package struct PublishOutcome: Sendable, Equatable {
    /// Ids of the events with a policy, by channel; empty if no event had one.
    package var events: [(channel: ChannelName, id: String)]

    package init(events: [(channel: ChannelName, id: String)]) {
        self.events = events
    }

    package static func == (left: PublishOutcome, right: PublishOutcome) -> Bool {
        left.events.elementsEqual(right.events) { $0.channel == $1.channel && $0.id == $1.id }
    }
}

/// Refusal of a publish; nothing of it was sent. Status 503 if a retry may help.
package struct PublishRefusal: Error, Sendable, Equatable {
    /// HTTP status of the answer.
    package var status: Int
    /// Reason for the sender.
    package var sentence: String

    package init(status: Int, sentence: String) {
        self.status = status
        self.sentence = sentence
    }

    /// The scheduled publish has been cancelled or published already.
    package static let notWaiting = PublishRefusal(status: 409, sentence: "the scheduled publish does not wait any more")
}
