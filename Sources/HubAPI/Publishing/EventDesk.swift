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
    package var purpose: PublishPurpose
    /// When it came in, in nanoseconds of the monotonic clock; 0: nobody measures how long it takes.
    package var arrivedAt: UInt64
    /// For a publish with an idempotency key: the answer, which is committed in the same transaction as the events.
    package var answer: (@Sendable ([PublishOutcome]) -> AnswerRecord)?
    /// Called once, from any thread: per request what was made of it, or why nothing at all was done.
    package var respond: @Sendable (Result<[PublishOutcome], PublishRefusal>) -> Void

    package init(
        app: App, requests: [PublishRequest], purpose: PublishPurpose = .publish, arrivedAt: UInt64 = 0,
        answer: (@Sendable ([PublishOutcome]) -> AnswerRecord)? = nil, respond: @escaping @Sendable (Result<[PublishOutcome], PublishRefusal>) -> Void
    ) {
        self.app = app
        self.requests = requests
        self.purpose = purpose
        self.arrivedAt = arrivedAt
        self.answer = answer
        self.respond = respond
    }
}

/// What is to be done with a publish.
package enum PublishPurpose: Sendable, Equatable {
    /// Decided, committed, and let out.
    case publish
    /// Decided only, to see whether it would be refused; nothing is committed or let out, and its outcomes mean nothing.
    case trial
    /// As `publish`, for one that was scheduled: its row ends in the same transaction. Refused with `PublishRefusal.notWaiting` when
    /// it does not wait any more.
    case scheduled(id: String)
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

/// Why a publish was refused, with 503 when trying again may help; nothing of it was sent.
package struct PublishRefusal: Error, Sendable, Equatable {
    package var status: Int
    package var sentence: String

    package init(status: Int, sentence: String) {
        self.status = status
        self.sentence = sentence
    }

    /// A scheduled publish was cancelled, or published before.
    package static let notWaiting = PublishRefusal(status: 409, sentence: "the scheduled publish does not wait any more")
}
