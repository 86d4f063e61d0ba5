/// One attempt to hand a push to its gateway.
package struct DeliveryAttempt: Sendable, Equatable {
    /// Counted from 1. A missing number belongs to an attempt that a crash cut off, whose answer is unknown.
    package var number: Int
    /// Begin of the attempt, in milliseconds since 1970.
    package var startedAt: Int64
    /// End of the attempt, in milliseconds since 1970.
    package var endedAt: Int64
    /// The gateway's answer in short, without token or payload; its first 200 characters are kept.
    package var answer: String
    /// Mark of the token that was used; nil if unknown.
    package var token: TokenMark?

    /// An attempt without a known token unless given.
    package init(number: Int, startedAt: Int64, endedAt: Int64, answer: String, token: TokenMark? = nil) {
        self.number = number
        self.startedAt = startedAt
        self.endedAt = endedAt
        self.answer = answer
        self.token = token
    }
}

/// A page of an event's trail: the results for its recipients.
package struct EventTrail: Sendable, Equatable {
    /// A row with its attempts.
    package struct Delivery: Sendable, Equatable {
        /// The row, without its message.
        package var record: PushRecord
        /// Attempts in the order of their numbers; about the first fifty are kept.
        package var attempts: [DeliveryAttempt]

        /// A row as stored.
        package init(record: PushRecord, attempts: [DeliveryAttempt]) {
            self.record = record
            self.attempts = attempts
        }
    }

    /// The results for one recipient.
    package struct Recipient: Sendable, Equatable {
        /// User id of the recipient.
        package var user: String
        /// State and decision at the commit; nil if only delivery rows mention the recipient.
        package var note: RecipientNote?
        /// Whether a receipt came.
        package var isConfirmed: Bool
        /// Time of the first receipt in milliseconds since 1970, rounded down to 100 ms after the commit. Times more than 109 minutes after
        /// the commit count as 109 minutes.
        package var confirmedAt: Int64?
        /// Whether the recipient got delivery rows.
        package var isPushed: Bool
        /// Rows by device.
        package var deliveries: [Delivery]

        /// A recipient as stored.
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

    /// The event.
    package var event: EventRecord
    /// Whether receipts are still awaited.
    package var isOpen: Bool
    /// Recipients of the whole event.
    package var recipientCount: Int
    /// Recipients of the page.
    package var recipients: [Recipient]
    /// Place at which the next page begins; nil for the last page.
    package var next: Int?

    /// A page as stored.
    package init(event: EventRecord, isOpen: Bool, recipientCount: Int, recipients: [Recipient], next: Int?) {
        self.event = event
        self.isOpen = isOpen
        self.recipientCount = recipientCount
        self.recipients = recipients
        self.next = next
    }

    /// Most recipients of one page.
    package static let pageMax = 1_000
}

/// Reads the trails of events. Callable from any thread.
package protocol TrailStore: Sendable {
    /// Reads a page of an event's trail.
    /// - Parameters:
    ///   - users: the only users to list, those of them that are recipients, in this order; nil for all.
    ///   - first: first place of the page, from 0; means nothing with `users`.
    ///   - limit: most recipients of the page; at most `EventTrail.pageMax`.
    /// - Returns: nil if there is no such event.
    func trail(event: String, users: [String]?, from first: Int, limit: Int) async throws -> EventTrail?
    /// Reads the outcomes of an event for all of its recipients. Costs a row per push.
    /// - Returns: nil if there is no such event.
    func outcomes(event: String) async throws -> EventOutcomes?
    /// Reads the trail of a user's events before a position, newest first, over all channels of the app. One call searches a bounded number
    /// of events of large sessions. So a page may be short or empty, and still say that there is more.
    /// - Parameters:
    ///   - position: `UserTrail.next` of the page before; `Int64.max` for the newest.
    ///   - limit: at most `UserTrail.pageMax`.
    func trail(app: String, user: String, before position: Int64, limit: Int) async throws -> UserTrail
}

extension TrailStore {
    /// The first page of an event's trail, or one recipient's.
    package func trail(event: String, user: String? = nil) async throws -> EventTrail? {
        try await trail(event: event, users: user.map { [$0] }, from: 0, limit: EventTrail.pageMax)
    }
}
