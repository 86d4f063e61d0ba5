/// One try to hand a push to its gateway.
package struct DeliveryAttempt: Sendable, Equatable {
    /// Counted from 1. A number that is missing among a delivery's attempts was cut off by a crash, its answer unknown.
    package var number: Int
    /// Milliseconds since 1970.
    package var startedAt: Int64
    package var endedAt: Int64
    /// The gateway's answer in short, without token or payload; its first 200 characters are kept.
    package var answer: String
    /// Mark of the token that it went to; nil: not known.
    package var token: TokenMark?

    package init(number: Int, startedAt: Int64, endedAt: Int64, answer: String, token: TokenMark? = nil) {
        self.number = number
        self.startedAt = startedAt
        self.endedAt = endedAt
        self.answer = answer
        self.token = token
    }
}

/// What became of an event, recipient by recipient: a page of it.
package struct EventTrail: Sendable, Equatable {
    package struct Delivery: Sendable, Equatable {
        /// Without its message.
        package var record: PushRecord
        /// In the order of their numbers; about the first fifty are kept.
        package var attempts: [DeliveryAttempt]

        package init(record: PushRecord, attempts: [DeliveryAttempt]) {
            self.record = record
            self.attempts = attempts
        }
    }

    package struct Recipient: Sendable, Equatable {
        package var user: String
        /// What was known at the commit and decided; nil where only delivery rows tell of the recipient.
        package var note: RecipientNote?
        package var isConfirmed: Bool
        /// When the first receipt came, rounded down to 100 ms after the commit; milliseconds since 1970. The latest time that
        /// is told apart is 109 minutes after the commit.
        package var confirmedAt: Int64?
        package var isPushed: Bool
        /// By device.
        package var deliveries: [Delivery]

        package init(
            user: String, note: RecipientNote?, isConfirmed: Bool, confirmedAt: Int64?, isPushed: Bool, deliveries: [Delivery]
        ) {
            self.user = user
            self.note = note
            self.isConfirmed = isConfirmed
            self.confirmedAt = confirmedAt
            self.isPushed = isPushed
            self.deliveries = deliveries
        }
    }

    package var event: EventRecord
    /// Receipts are still awaited.
    package var isOpen: Bool
    /// Of the whole event.
    package var recipientCount: Int
    package var recipients: [Recipient]
    /// Where the next page begins; nil: this was the last.
    package var next: Int?

    package init(event: EventRecord, isOpen: Bool, recipientCount: Int, recipients: [Recipient], next: Int?) {
        self.event = event
        self.isOpen = isOpen
        self.recipientCount = recipientCount
        self.recipients = recipients
        self.next = next
    }

    /// Recipients of one page at most.
    package static let pageMax = 1_000
}

/// Reads how an event went. Callable from any thread.
package protocol TrailStore: Sendable {
    /// - Parameters:
    ///   - user: only this one's; nobody when it is not a recipient.
    ///   - first: where the page begins, counted from 0.
    ///   - limit: recipients of the page; `EventTrail.pageMax` at most.
    /// - Returns: nil when the event is not there.
    func trail(event: String, user: String?, from first: Int, limit: Int) async throws -> EventTrail?
}

extension TrailStore {
    /// The first page.
    package func trail(event: String, user: String? = nil) async throws -> EventTrail? {
        try await trail(event: event, user: user, from: 0, limit: EventTrail.pageMax)
    }
}
