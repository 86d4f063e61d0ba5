import HubCore
import HubDelivery

extension EventOutcomes {
    /// The outcomes of an event with a recipient row.
    /// - Parameter notes: nil if they cannot be read.
    init(
        _ event: EventRecord, isOpen: Bool, users: [String], notes: [RecipientNote]?, _ bits: RecipientBits,
        _ pushes: [ExactText: PushTimes]
    ) {
        let recipients = users.indices.map { place in
            (pushes[ExactText(users[place])] ?? PushTimes()).outcome(
                of: users[place], choice: notes?[place].choice, isConfirmed: bits.confirmed.contains(place),
                confirmedAfter: bits.received?.milliseconds(place), in: event, isOpen: isOpen)
        }
        self.init(event: event, isOpen: isOpen, recipients: recipients)
    }

    /// The outcomes of an event of which only push rows are left, by user.
    init(_ event: EventRecord, users: [String], _ pushes: [ExactText: PushTimes]) {
        let recipients = users.map { user in
            (pushes[ExactText(user)] ?? PushTimes()).outcome(
                of: user, choice: nil, isConfirmed: false, confirmedAfter: nil, in: event, isOpen: false)
        }
        self.init(event: event, isOpen: false, recipients: recipients)
    }
}
