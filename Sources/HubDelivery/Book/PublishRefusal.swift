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

/// Purpose of a publish.
package enum PublishPurpose: Sendable, Equatable {
    /// Decide, commit and send.
    case publish
    /// Decide only, to find refusals. Nothing is committed or sent, and the outcomes are meaningless.
    case trial
    /// Decide only, to say who would be told how (`DeliveryBook.Effect.forecast`). Nothing is committed, sent or counted.
    case forecast
    /// `publish` for a scheduled event, whose row ends in the same transaction. Refused with `PublishRefusal.notWaiting` if the row no
    /// longer waits.
    case scheduled(id: String)

    /// Whether the publish goes out.
    package var isReal: Bool {
        switch self {
        case .publish, .scheduled: true
        case .trial, .forecast: false
        }
    }
}
