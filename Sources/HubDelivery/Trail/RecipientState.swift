/// The end of an event for one recipient, or its present state, in one word.
package enum RecipientState: String, Sendable, CaseIterable {
    /// The receipt may still come; a push goes out without one.
    case awaited
    /// A receipt came.
    case confirmed
    /// A push waits for its gateway.
    case pushing
    /// A gateway accepted a push.
    case pushed
    /// Told over the socket alone.
    case socket
    /// Ends of a push, or of the decision to make none.
    case failed, expired, undeliverable, cancelled
    case skippedUnconfigured = "skipped_unconfigured"
    /// The wait ended without a receipt, and no push was made.
    case closed
    /// A rule kept the push back.
    case skipped

    /// - Parameters:
    ///   - choice: the decision; nil if only push rows mention the recipient.
    ///   - isOpen: whether the event's receipts are still awaited.
    package init(isConfirmed: Bool, _ pushes: PushEnds, choice: RecipientNote.Choice?, isOpen: Bool) {
        if isConfirmed {
            self = .confirmed
        } else if pushes.isAccepted {
            // The best of several devices decides, because the person has seen that one.
            self = .pushed
        } else if pushes.isOpen {
            self = .pushing
        } else if let end = pushes.end {
            self = RecipientState(end)
        } else {
            self = RecipientState(choice, isOpen: isOpen)
        }
    }

    private init(_ end: PushState) {
        switch end {
        case .waiting, .due, .leased, .retry: self = .pushing
        case .accepted: self = .pushed
        case .socket: self = .socket
        case .failed: self = .failed
        case .expired: self = .expired
        case .undeliverable: self = .undeliverable
        case .cancelled: self = .cancelled
        case .skippedUnconfigured: self = .skippedUnconfigured
        }
    }

    /// The state of a recipient without a push row.
    private init(_ choice: RecipientNote.Choice?, isOpen: Bool) {
        switch choice {
        case .awaited: self = isOpen ? .awaited : .closed
        case .socketOnly, .seen: self = .socket
        case .pushed: self = .pushing
        case .actor: self = .cancelled
        case .expired: self = .expired
        case .noDevice, .noToken, .permissionDenied, .tokenTooOld: self = .undeliverable
        default: self = .skipped
        }
    }
}

/// The ends of one recipient's notifications of one event, gathered row by row.
package struct PushEnds: Sendable, Equatable {
    /// A gateway accepted one.
    package private(set) var isAccepted = false
    /// One is not at its end.
    package private(set) var isOpen = false
    private var first: PushState?
    private var firstKept: PushState?

    /// No rows.
    package init() {}

    /// The first end by device; a push that others replaced counts only without any other.
    package var end: PushState? { firstKept ?? first }

    /// Adds a row; rows come in the order of their devices. Clears tell nobody anything and do not count.
    package mutating func add(_ state: PushState, purpose: DeliveryPurpose, outcome: String?) {
        guard purpose == .notification else { return }
        if state == .accepted { isAccepted = true }
        if PushState.open.contains(state) { isOpen = true }
        if first == nil { first = state }
        if firstKept == nil, outcome != Redirection.replaced { firstKept = state }
    }
}

extension EventTrail.Recipient {
    /// The recipient's state in one word.
    package func state(isOpen: Bool) -> RecipientState {
        var ends = PushEnds()
        for delivery in deliveries { ends.add(delivery.record.state, purpose: delivery.record.purpose, outcome: delivery.record.outcome) }
        return RecipientState(isConfirmed: isConfirmed, ends, choice: note?.choice, isOpen: isOpen)
    }
}
