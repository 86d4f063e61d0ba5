internal import HubCore
package import HubDefinitions

/// The people of an event, read from the directory.
package struct EventAudience: Sendable {
    package struct Entry: Sendable {
        package var user: String
        /// Nil: the user is on no roster.
        package var participant: Participant?
        package var devices: [Device]

        package init(user: String, participant: Participant?, devices: [Device]) {
            self.user = user
            self.participant = participant
            self.devices = devices
        }
    }

    package var app: String
    package var definition: ChannelDefinition
    package var placeholders: ChannelPattern.Match
    /// Nil: the channel's name has no session.
    package var session: Session?
    package var entries: [Entry]

    package init(
        app: String, definition: ChannelDefinition, placeholders: ChannelPattern.Match, session: Session? = nil, entries: [Entry] = []
    ) {
        self.app = app
        self.definition = definition
        self.placeholders = placeholders
        self.session = session
        self.entries = entries
    }

    /// The variants that apply to some role or to a person without a role, each once.
    func variants(_ event: EventDefinition, data: JSONValue) -> [EventVariant] {
        var variants: [EventVariant] = []
        for role in roles {
            guard let variant = event.variant(user: placeholders.user ?? "", role: role, channelUser: placeholders.user, data: data)
            else { continue }
            if !variants.contains(where: { $0.index == variant.index }) { variants.append(variant) }
        }
        return variants
    }

    /// Roles whose sockets get the event: some variant applies to them and uses the socket.
    func socketRoles(_ event: EventDefinition, data: JSONValue) -> RoleSet {
        var excluded: RoleSet = []
        for role in roles {
            let variant = event.variant(user: placeholders.user ?? "", role: role, channelUser: placeholders.user, data: data)
            if variant == nil || variant?.policy == .pushOnly { excluded.insert(RoleSet(role: role, in: definition)) }
        }
        return excluded.isEmpty ? .everybody : RoleSet.everybody.subtracting(excluded)
    }

    private var roles: [String?] { definition.roles + [nil] }
}
