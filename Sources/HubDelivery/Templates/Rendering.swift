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

/// Whether a gateway can take a notification: what delivery asks before anything is stored. Called from any thread.
package protocol PayloadCheck: Sendable {
    /// Why no gateway would take it, however short its text, as a sentence with the size; nil when all would.
    func problem(_ message: PushMessage) -> String?
}

/// Makes the notifications of one publish. Texts that are the same for everybody are made once for each language.
package struct Rendering {
    private let definition: ChannelDefinition
    private let event: EventRecord
    private let context: TemplateContext
    private let check: (any PayloadCheck)?
    /// Those whose texts name no recipient.
    private var shared: [TextKey: PushMessage] = [:]
    /// The last one that a gateway would take, its visible texts left out.
    private var fitting: PushMessage?

    private struct TextKey: Hashable {
        let variant: Int
        let locale: String?
    }

    /// - Parameters:
    ///   - channel: what the placeholders of the channel's name stand for.
    ///   - session: the session the channel belongs to; nil when there is none.
    ///   - data: the event's data, parsed; anything but an object has no variables.
    ///   - check: asked once for all texts that differ in title and body alone; nil for a notification whose publish was checked.
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

    /// What the gateways get for this recipient's devices of one language; nil when the policy makes no pushes.
    ///
    /// - Parameters:
    ///   - variant: the one that `EventDefinition.variant` chose for the recipient.
    ///   - participant: nil when the recipient is on no roster; then texts that name the participant fail.
    ///   - locale: the device's, such as `de-CH`; nil when it is not known.
    /// - Throws: when values are missing or no gateway would take it; the publish is then to be refused with 400 before anything is sent.
    package mutating func message(
        _ variant: EventVariant, user: String, participant: Participant?, locale: String? = nil
    )
        throws(RenderingError) -> PushMessage?
    {
        try message(
            variant, participant: participant, nid: NotificationID.make(event: event.id, app: event.app, user: user), locale: locale)
    }

    /// As above, for who knows the recipient's `NotificationID` already.
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

    /// Makes a variant's text in each of its languages: what a publish lacks must not depend on who has a device.
    /// - Parameter participant: whom the text may name; nil for one that is the same for everybody.
    package mutating func prepare(_ variant: EventVariant, participant: Participant? = nil) throws(RenderingError) {
        for locale in [nil] + variant.locales.tags.map(Optional.some) {
            _ = try message(variant, participant: participant, nid: "", locale: locale)
        }
    }

    /// Why no gateway would take the message; nil: they would. Title and body are cut until they fit, so messages that differ only in them
    /// share an answer. The check takes longer than all other work for a recipient.
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

    /// What a gateway is sent at least of a text; one that is shorter than the ellipsis stays.
    private static func stub(_ text: String?) -> String? { text.map { $0.utf8.count < 3 ? $0 : "…" } }

    private mutating func make(
        _ variant: EventVariant, _ context: TemplateContext, nid: String, locale: String?
    ) throws(RenderingError) -> PushMessage {
        var problems: [String] = []
        let texts = locale.flatMap { variant.locales[$0] } ?? variant.notification
        let data = (variant.data.render(context, problems: &problems).objectValue ?? [:]).filter { $0.value != .null }
        let title = texts?.title.render(context, problems: &problems)
        let body = texts?.body.render(context, problems: &problems)
        let subtitle = texts?.subtitle?.render(context, problems: &problems).nilIfEmpty
        // A picture that only some publishes have is written as a section, and empty where there is none.
        let image = texts?.image?.render(context, problems: &problems).nilIfEmpty
        let platforms = variant.platformTemplates.map { filled($0, context, &problems) } ?? variant.platforms
        var content = NotificationContent(title: title, subtitle: subtitle, body: body, image: image, data: data, platforms: platforms)
        content.kind = variant.kind
        let message = content.message(
            nid: nid, event: event.id, policy: variant.policy, group: variant.group?.render(context, problems: &problems),
            expiresAt: event.committedAt + variant.ttlMilliseconds, committedAt: event.committedAt, sequence: event.sequence)
        if problems.isEmpty, let problem = problem(message) { problems.append(problem) }
        guard problems.isEmpty else {
            throw RenderingError(problems: problems, event: event.name, definition: definition.name)
        }
        return message
    }

    /// Blocks whose texts are filled in now; read again, because a value may be none that a gateway takes.
    private func filled(_ templates: TemplateJSON, _ context: TemplateContext, _ problems: inout [String]) -> PlatformContent {
        let known = problems.count
        let members = templates.render(context, problems: &problems).objectValue ?? [:]
        guard problems.count == known else { return PlatformContent() }
        var reader = ContentReader(emptyIsAbsent: true)
        let content = PlatformContent(PlatformContent.withoutIdleActivity(members), reader: &reader)
        content.check(&reader)
        problems += reader.mistakes.map(\.description)
        if let problem = AndroidChannels.problem(content, known: definition.androidChannels) {
            problems.append("android.channel_id: \(problem)")
        }
        return content
    }
}

extension String {
    fileprivate var nilIfEmpty: String? { isEmpty ? nil : self }
}
