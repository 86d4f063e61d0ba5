/// The outcomes of one event for all of its recipients, without the single pushes.
package struct EventOutcomes: Sendable, Equatable {
    /// The outcome for one recipient. Times are milliseconds after the commit; a clock set back counts as 0.
    package struct Recipient: Sendable, Equatable {
        /// User id.
        package var user: String
        /// The decision; nil if only push rows mention the recipient.
        package var choice: RecipientNote.Choice?
        /// State in one word.
        package var state: RecipientState
        /// Time of the first receipt, in steps of 100 ms; nil: none.
        package var confirmedAfter: Int64?
        /// Start of the first attempt, or the due time of a push that waits for one; nil: no push went out.
        package var escalatedAfter: Int64?
        /// Time of the first acceptance by a gateway; nil: none.
        package var acceptedAfter: Int64?

        /// A recipient as stored.
        package init(
            user: String, choice: RecipientNote.Choice?, state: RecipientState, confirmedAfter: Int64? = nil, escalatedAfter: Int64? = nil,
            acceptedAfter: Int64? = nil
        ) {
            self.user = user
            self.choice = choice
            self.state = state
            self.confirmedAfter = confirmedAfter
            self.escalatedAfter = escalatedAfter
            self.acceptedAfter = acceptedAfter
        }
    }

    /// The event.
    package var event: EventRecord
    /// Whether receipts are still awaited.
    package var isOpen: Bool
    /// All recipients, in the order of `EventTrail.recipients`.
    package var recipients: [Recipient]

    /// Outcomes as stored.
    package init(event: EventRecord, isOpen: Bool, recipients: [Recipient]) {
        self.event = event
        self.isOpen = isOpen
        self.recipients = recipients
    }
}

/// The push rows of one recipient of one event, reduced to what `EventOutcomes` tells of them.
package struct PushTimes: Sendable, Equatable {
    /// Their ends.
    package private(set) var ends = PushEnds()
    /// Start of the first attempt or due time of a waiting push, in milliseconds since 1970.
    package private(set) var escalatedAt: Int64?
    /// End of the first attempt that a gateway accepted, in milliseconds since 1970.
    package private(set) var acceptedAt: Int64?

    /// No rows.
    package init() {}

    /// Adds a row; rows come in the order of their devices.
    /// - Parameters:
    ///   - isOfDevice: false for a row that only tells why there is no push.
    ///   - attempts: by number.
    package mutating func add(
        _ state: PushState, purpose: DeliveryPurpose, outcome: String?, dueAt: Int64, isOfDevice: Bool, attempts: [DeliveryAttempt]
    ) {
        ends.add(state, purpose: purpose, outcome: outcome)
        guard purpose == .notification, isOfDevice else { return }
        let waitsUntil = PushState.open.contains(state) ? dueAt : nil
        if let start = attempts.first?.startedAt ?? waitsUntil { escalatedAt = min(escalatedAt ?? start, start) }
        if state == .accepted, let end = attempts.last?.endedAt { acceptedAt = min(acceptedAt ?? end, end) }
    }

    /// The outcome for the recipient of these rows.
    package func outcome(
        of user: String, choice: RecipientNote.Choice?, isConfirmed: Bool, confirmedAfter: Int64?, in event: EventRecord, isOpen: Bool
    ) -> EventOutcomes.Recipient {
        EventOutcomes.Recipient(
            user: user, choice: choice, state: RecipientState(isConfirmed: isConfirmed, ends, choice: choice, isOpen: isOpen),
            confirmedAfter: confirmedAfter, escalatedAfter: escalatedAt.map { max(0, $0 - event.committedAt) },
            acceptedAfter: acceptedAt.map { max(0, $0 - event.committedAt) })
    }
}
