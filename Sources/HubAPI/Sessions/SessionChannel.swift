internal import HubDefinitions
internal import PusherProtocol

/// The channel of a session by the loaded definitions.
struct SessionChannel {
    let definitions: DefinitionSet

    /// The definition of a stored session. It can be missing after a reload.
    func definition(of session: Session) throws(APIError) -> ChannelDefinition {
        guard let definition = definitions.definition(named: session.definition) else { throw .definitionMissing(session.definition) }
        return definition
    }

    /// The session's channel for its backend. `{user}` stays in the text if each participant has a channel of their own. Channel names
    /// cannot contain braces, so the text is no valid name.
    func text(of session: Session) -> String? {
        guard let pattern = definitions.definition(named: session.definition)?.pattern else { return nil }
        let pieces = pattern.description.split(separator: "{session}", omittingEmptySubsequences: false)
        return pieces.joined(separator: session.id)
    }

    /// The channel of one participant; nil if the user id is not allowed in a channel's name, or if the definition is gone.
    func name(session: String, definition: String, user: String) -> String? {
        definitions.definition(named: definition)?.pattern.channelName(session: session, user: user)
    }

    /// Refuses a session with an ambiguous channel.
    func check(session: String, definition: ChannelDefinition) throws(APIError) {
        // The store gives joining participants their number as user id; any digit stands for it here.
        guard !isOwnChannel(session: session, definition: definition, user: "0") else { return }
        throw APIError(
            400,
            "the session's name does not fit into the channel \(definition.pattern) of the definition: choose a shorter one, "
                + "without the text between the placeholders, whose channel no other definition's pattern takes")
    }

    /// Refuses a participant with an ambiguous channel. No effect if channels are not per user.
    func check(user: String, session: Session, definition: ChannelDefinition) throws(APIError) {
        guard definition.pattern.placeholders.contains(.user) else { return }
        guard !isOwnChannel(session: session.id, definition: definition, user: user) else { return }
        throw APIError(
            400,
            "the user id does not fit into the channel \(definition.pattern) of the definition: use a shorter one out of "
                + "A-Z a-z 0-9 _ - = @ , . ; without the text between the placeholders")
    }

    /// Whether this participant of this session may subscribe to the channel. Matches against all definitions, as publishing does:
    /// a name that another definition's pattern takes belongs to that definition.
    func isOpen(_ channel: String, session: String, definition: String, user: String) -> Bool {
        guard let (found, placeholders) = definitions.match(channel: channel), found.name == definition else { return false }
        return (placeholders.session ?? session) == session && (placeholders.user ?? user) == user
    }

    private func isOwnChannel(session: String, definition: ChannelDefinition, user: String) -> Bool {
        guard let text = definition.pattern.channelName(session: session, user: user), text.utf8.count <= ChannelPattern.nameCharactersMax,
            // With a session called encrypted-1, `private-{session}` would be a channel that the hub cannot read.
            let channel = ChannelName(text), !channel.kind.isEncrypted
        else { return false }
        return isOpen(text, session: session, definition: definition.name, user: user)
    }
}
