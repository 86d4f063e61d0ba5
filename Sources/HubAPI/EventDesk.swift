package import HubChannels
internal import HubCore
package import HubDelivery
package import PusherProtocol

/// Takes events for channels that have a definition, and events whose answer is to be kept: who is told, on which surface, is
/// decided there, and what has to be durable is committed. Any thread.
package protocol EventDesk: Sendable {
    /// Whether some definition's pattern matches the channel. Cheap when none does.
    func isDefined(_ channel: ChannelName) -> Bool
    /// Takes a publish; false when too many are waiting already, and then `respond` is never called.
    func submit(_ command: PublishCommand) -> Bool
}

/// One request to publish, valid in every part. Channels that have no definition are taken, too.
package struct PublishCommand: Sendable {
    package var app: App
    /// One for `/events`, several for `/batch_events`; in order.
    package var requests: [PublishRequest]
    /// For a publish with an idempotency key: the answer, which is committed in the same transaction as the events.
    package var answer: (@Sendable ([PublishOutcome]) -> AnswerRecord)?
    /// Called once, from any thread: per request what was made of it, or why nothing at all was done.
    package var respond: @Sendable (Result<[PublishOutcome], PublishRefusal>) -> Void

    package init(
        app: App, requests: [PublishRequest], answer: (@Sendable ([PublishOutcome]) -> AnswerRecord)? = nil,
        respond: @escaping @Sendable (Result<[PublishOutcome], PublishRefusal>) -> Void
    ) {
        self.app = app
        self.requests = requests
        self.answer = answer
        self.respond = respond
    }
}

/// What one accepted publish became.
package struct PublishOutcome: Sendable, Equatable {
    /// The events that had a policy, by channel; empty when none had.
    package var events: [(channel: ChannelName, id: String)]

    package init(events: [(channel: ChannelName, id: String)]) {
        self.events = events
    }

    package static func == (left: PublishOutcome, right: PublishOutcome) -> Bool {
        left.events.elementsEqual(right.events) { $0.channel == $1.channel && $0.id == $1.id }
    }
}

/// Why a publish was refused; nothing of it was sent.
package struct PublishRefusal: Error, Sendable, Equatable {
    package var status: Int
    package var sentence: String

    package init(status: Int, sentence: String) {
        self.status = status
        self.sentence = sentence
    }
}
