package import HubCore
package import HubDefinitions

/// A publish whose notification lacks values. Nothing was sent.
package struct RenderingError: Error, Equatable, CustomStringConvertible {
    /// Missing values and their places; names only, never values.
    package let problems: [String]
    /// Name of the event.
    package let event: String
    /// Name of the channel definition.
    package let definition: String

    /// The refusal's sentence for the publisher.
    package var description: String {
        "the notification of \"\(event)\" in the channel definition \"\(definition)\" cannot be made: \(problems.joined(separator: "; "))"
    }
}

/// Check whether gateways can take a notification, made before anything is stored. Callable from any thread.
package protocol PayloadCheck: Sendable {
    /// Reason why no gateway would take it, however short its text, as a sentence with the size; nil if all would.
    func problem(_ message: PushMessage) -> String?
}

/// Renders the notifications of one publish. Texts without the recipient's values are rendered once per language.
package struct Rendering {
    private let definition: ChannelDefinition
    private let event: EventRecord
    private let context: TemplateContext
    private let check: (any PayloadCheck)?
    /// Messages whose texts name no recipient.
    private var shared: [TextKey: PushMessage] = [:]
    /// The last message that a gateway would take, without its visible texts.
    private var fitting: PushMessage?

    private struct TextKey: Hashable {
        let variant: Int
        let locale: String?
    }

    /// Prepares a publish; nothing is rendered yet.
    /// - Parameters:
    ///   - channel: values of the placeholders in the channel's name.
    ///   - session: session of the channel; nil for none.
    ///   - data: the event's data, parsed; anything but an object has no variables.
    ///   - check: asked once for all texts that differ only in title and body; nil if the publish was checked before.
    package init(
        definition: ChannelDefinition, event: EventRecord, channel: ChannelPattern.Match, session: Session?, data: JSONValue,
        check: (any PayloadCheck)? = nil
    ) {
        self.definition = definition
        self.event = event
        self.check = check
        context = TemplateContext(
            channel: channel, session: session, participant: nil, eventID: event.id, eventName: event.name,
            eventTime: event.committedAt,
            data: data)
    }

    /// The message for a recipient's devices of one language; nil if the policy makes no pushes.
    ///
    /// - Parameters:
    ///   - variant: the variant that `EventDefinition.variant` chose for the recipient.
    ///   - participant: nil if the recipient is on no roster; texts that name the participant then fail.
    ///   - locale: the device's, such as `de-CH`; nil if unknown.
    /// - Throws: if values are missing or no gateway would take it. The publish is then refused with 400 before anything is sent.
    package mutating func message(
        _ variant: EventVariant, user: String, participant: Participant?, locale: String? = nil
    )
        throws(RenderingError) -> PushMessage?
    {
        try message(
            variant, participant: participant, nid: NotificationID.make(event: event.id, app: event.app, user: user), locale: locale)
    }

    /// Same message for a caller that knows the recipient's `NotificationID`.
    package mutating func message(
        _ variant: EventVariant, participant: Participant?, nid: String, locale: String? = nil
    )
        throws(RenderingError) -> PushMessage?
    {
        guard variant.policy.pushKind != nil else { return nil }
        let key = TextKey(variant: variant.index, locale: variant.locales.tag(for: locale))
        if var message = shared[key] {
            message.nid = nid
            return message
        }
        var context = context
        context.participant = participant
        let message = try make(variant, context, nid: nid, locale: key.locale)
        if !variant.isPersonal { shared[key] = message }
        return message
    }

    /// Renders a variant in each of its languages, so that errors of a publish do not depend on the devices.
    /// - Parameter participant: participant whom the text may name; nil for a text that is the same for everybody.
    package mutating func prepare(_ variant: EventVariant, participant: Participant? = nil) throws(RenderingError) {
        for locale in [nil] + variant.locales.tags.map(Optional.some) {
            _ = try message(variant, participant: participant, nid: "", locale: locale)
        }
    }

    /// Reason why no gateway would take the message; nil if all would. Title and body are cut until they fit, so messages that differ only
    /// in them share an answer. The check takes longer than all other work for a recipient.
    private mutating func problem(_ message: PushMessage) -> String? {
        guard let check else { return nil }
        var bare = message
        bare.nid = ""
        bare.title = Self.stub(message.title)
        bare.body = Self.stub(message.body)
        if bare == fitting { return nil }
        let problem = check.problem(message)
        if problem == nil { fitting = bare }
        return problem
    }

    /// The shortest form in which a gateway is sent a text: the ellipsis, or the text itself if shorter.
    private static func stub(_ text: String?) -> String? { text.map { $0.utf8.count < 3 ? $0 : "…" } }

    private mutating func make(
        _ variant: EventVariant, _ context: TemplateContext, nid: String, locale: String?
    ) throws(RenderingError) -> PushMessage {
        var problems: [String] = []
        let content = variant.content(context, locale: locale, androidChannels: definition.androidChannels, problems: &problems)
        let message = content.message(
            nid: nid, event: event.id, policy: variant.policy, group: variant.group?.render(context, problems: &problems),
            expiresAt: event.committedAt + variant.ttlMilliseconds, committedAt: event.committedAt, sequence: event.sequence)
        if problems.isEmpty, let problem = problem(message) { problems.append(problem) }
        guard problems.isEmpty else {
            throw RenderingError(problems: problems, event: event.name, definition: definition.name)
        }
        return message
    }
}
