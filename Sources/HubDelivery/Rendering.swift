package import HubCore

/// A publish that cannot be told: values its notification needs are missing. Nothing was sent.
package struct RenderingError: Error, Equatable, CustomStringConvertible {
    /// What is missing where; names only, never values.
    package let problems: [String]
    package let event: String
    package let definition: String

    package var description: String {
        "the notification of \"\(event)\" in the channel definition \"\(definition)\" cannot be made: \(problems.joined(separator: "; "))"
    }
}

/// Makes the notifications of one publish. Texts that are the same for everybody are made once.
package struct Rendering {
    private let definition: ChannelDefinition
    private let event: EventRecord
    private let context: TemplateContext
    /// The variants of this event whose texts name no recipient, by their index.
    private var shared: [Int: PushMessage] = [:]

    /// - Parameters:
    ///   - channel: what the placeholders of the channel's name stand for.
    ///   - session: the session the channel belongs to; nil when there is none.
    ///   - data: the event's data, parsed; anything but an object has no variables.
    package init(
        definition: ChannelDefinition, event: EventRecord, channel: ChannelPattern.Match, session: Session?, data: JSONValue
    ) {
        self.definition = definition
        self.event = event
        context = TemplateContext(
            channel: channel, session: session, participant: nil, eventID: event.id, eventName: event.name,
            eventTime: event.committedAt,
            data: data)
    }

    /// What the gateways get for this recipient, the same for all of their devices; nil when the policy makes no pushes.
    ///
    /// - Parameters:
    ///   - variant: the one that `EventDefinition.variant` chose for the recipient.
    ///   - participant: nil when the recipient is on no roster; then texts that name the participant fail.
    /// - Throws: when values are missing; the publish is then to be refused with 400 before anything is sent.
    package mutating func message(_ variant: EventVariant, user: String, participant: Participant?) throws(RenderingError)
        -> PushMessage?
    {
        try message(variant, participant: participant, nid: NotificationID.make(event: event.id, app: event.app, user: user))
    }

    /// As above, for who knows the recipient's `NotificationID` already.
    package mutating func message(_ variant: EventVariant, participant: Participant?, nid: String) throws(RenderingError) -> PushMessage? {
        guard let kind = variant.policy.pushKind else { return nil }
        if var message = shared[variant.index] {
            message.nid = nid
            return message
        }
        var context = context
        context.participant = participant
        var problems: [String] = []
        let message = PushMessage(
            nid: nid, event: event.id, kind: kind, policy: variant.policy, title: variant.notification?.title.render(context, problems: &problems),
            body: variant.notification?.body.render(context, problems: &problems),
            // A picture that only some publishes have is written as a section, and empty where there is none.
            image: variant.notification?.image?.render(context, problems: &problems).nilIfEmpty,
            data: members(variant.data, context, &problems), apns: members(variant.apns, context, &problems),
            android: members(variant.android, context, &problems), group: variant.group?.render(context, problems: &problems),
            expiresAt: event.committedAt + variant.ttlMilliseconds, committedAt: event.committedAt, sequence: event.sequence)
        guard problems.isEmpty else {
            throw RenderingError(problems: problems, event: event.name, definition: definition.name)
        }
        if !variant.isPersonal { shared[variant.index] = message }
        return message
    }

    private func members(_ value: TemplateJSON, _ context: TemplateContext, _ problems: inout [String]) -> [String: JSONValue] {
        value.render(context, problems: &problems).objectValue ?? [:]
    }
}

extension String {
    fileprivate var nilIfEmpty: String? { isEmpty ? nil : self }
}
