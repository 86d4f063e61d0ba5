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
    /// The app that publishes.
    package var app: App
    /// One for `/events`, several for `/batch_events`; in order.
    package var requests: [PublishRequest]
    /// Whether to publish or only to look for refusals.
    package var purpose: PublishPurpose
    /// One for each request, where the requests have names of their own; empty: they have none.
    package var ids: [PublishID] = []
    /// The idempotency key of the request; nil: none.
    package var key: String?
    /// Whether some events may be in the store already, from an earlier try.
    package var mayBeKnown = false
    /// Arrival in nanoseconds of the monotonic clock; 0: latency is not measured.
    package var arrivedAt: UInt64
    /// For a publish with an idempotency key: makes the answers, which are committed in the same transaction as the events.
    package var answers: (@Sendable ([PublishOutcome]) -> [AnswerRecord])?
    /// Called once, from any thread: the outcome per request, or the reason why nothing was published.
    package var respond: @Sendable (Result<[PublishOutcome], PublishRefusal>) -> Void

    /// At least one request.
    package init(
        app: App, requests: [PublishRequest], purpose: PublishPurpose = .publish, arrivedAt: UInt64 = 0,
        answers: (@Sendable ([PublishOutcome]) -> [AnswerRecord])? = nil,
        respond: @escaping @Sendable (Result<[PublishOutcome], PublishRefusal>) -> Void
    ) {
        self.app = app
        self.requests = requests
        self.purpose = purpose
        self.arrivedAt = arrivedAt
        self.answers = answers
        self.respond = respond
    }
}

/// Outcome of one accepted publish.
package struct PublishOutcome: Sendable, Equatable {
    /// Ids of the events with a policy, by channel; empty if no event had one.
    package var events: [(channel: ChannelName, id: String)]
    /// For a publish that only asks: what it would come to, by channel.
    package var forecasts: [EventForecast] = []

    /// The events with a policy, by channel.
    package init(events: [(channel: ChannelName, id: String)]) {
        self.events = events
    }

    package static func == (left: PublishOutcome, right: PublishOutcome) -> Bool {
        left.events.elementsEqual(right.events) { $0.channel == $1.channel && $0.id == $1.id } && left.forecasts == right.forecasts
    }
}
