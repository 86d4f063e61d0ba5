package import HubCore

/// What `channels/NAME.yaml` says: which channels it is about, who takes part, and what becomes of their events.
package struct ChannelDefinition: Sendable, Equatable {
    /// The file's name without `.yaml`.
    package var name: String
    /// The file as it was read, for messages.
    package var file: String
    package var pattern: ChannelPattern
    /// The roles participants can have; empty: none.
    package var roles: [String]
    /// Loops know a role by one of 32 bits, and the last one stands for who has none.
    package static let rolesMax = 31
    package var join: JoinRule
    package var scope: SuppressScope
    /// What one device confirms is taken back from the participant's others that were pushed it.
    package var clearsSiblings: Bool
    /// Who comes back to a channel is sent what they missed.
    package var replays: Bool
    /// Members of its channel, where it is a presence channel.
    package var membersMax: Int
    package static let membersMaxDefault = 10_000
    /// A list of so many with 1 KB about each of them has 100 MB.
    package static let membersMaxMax = 100_000
    package var quietHours: QuietHours?
    package var alerts: AlertLimits
    /// The notification channels that the Android app creates; empty: any name will do.
    package var androidChannels: [String]
    /// By the event's name on the socket. Other events of the channel are ordinary ones.
    package var events: [String: EventDefinition]

    /// How people come into a session over the join routes.
    package struct JoinRule: Sendable, Equatable {
        package var identity: JoinIdentity
        /// The role of who joins; nil: none.
        package var role: String?
        /// Nobody joins without a device that can be pushed to.
        package var requiresToken: Bool

        package init(identity: JoinIdentity, role: String?, requiresToken: Bool = false) {
            self.identity = identity
            self.role = role
            self.requiresToken = requiresToken
        }
    }
}

/// One event of a definition.
package struct EventDefinition: Sendable, Equatable {
    package var name: String
    /// What its published data has to have.
    package var fields: [EventField]
    /// At least one; an event without `variants` is a single one that always applies.
    package var variants: [EventVariant]

    /// The first variant that is meant for such a recipient; nil: the event is not for them, on no surface.
    /// - Parameters:
    ///   - user: the recipient.
    ///   - role: nil for one without a role, and for a member that is on no roster.
    ///   - channelUser: what `{user}` is in the channel's name.
    ///   - data: the published data.
    package func variant(user: String, role: String?, channelUser: String?, data: JSONValue) -> EventVariant? {
        variants.first { variant in
            variant.conditions.allSatisfy { $0.holds(in: data) }
                && variant.audience.includes(user: user, role: role, channelUser: channelUser)
        }
    }
}

/// What becomes of an event for some of its recipients, under some conditions.
package struct EventVariant: Sendable, Equatable {
    /// All have to hold.
    package var conditions: [VariantCondition]
    package var audience: Audience
    package var policy: Policy
    /// From the event's commit; 5 s to 28 days.
    package var ttl: Duration
    /// The collapse key on both gateways.
    package var group: Template?
    /// Which of FCM's message kinds its pushes are.
    package var kind: ContentKind
    /// Present exactly when the policy makes visible pushes.
    package var notification: NotificationTemplate?
    /// The same in other languages; title and body that one of them lacks are those of `notification`.
    package var locales: LocaleTexts
    /// An object; empty when the definition says nothing.
    package var data: TemplateJSON
    /// The platforms' blocks, as far as they can be known before a publish.
    var platforms: PlatformContent
    /// The same with something to fill in; nil when there is nothing.
    var platformTemplates: TemplateJSON?
    /// Its place among the event's variants, from 0.
    package var index: Int
    /// Where it stands in the file, from 1.
    package var line: Int

    /// Whether two recipients of one event can get different texts.
    package var isPersonal: Bool {
        data.isPersonal || platformTemplates?.isPersonal == true || group?.isPersonal == true || notification?.isPersonal == true
            || locales.templates.contains(where: \.isPersonal)
    }

    /// `ttl` in milliseconds.
    package var ttlMilliseconds: Int64 { ttl.milliseconds }
}

/// Whom an event is for.
package enum Audience: Sendable, Equatable {
    case all
    case roles([String])
    /// The `{user}` of the channel's name.
    case channelUser

    /// Whether a recipient with this role is meant; `user` matters for `channelUser` only.
    package func includes(user: String, role: String?, channelUser: String?) -> Bool {
        switch self {
        case .all: true
        case .roles(let roles): role.map(roles.contains) ?? false
        case .channelUser: user == channelUser
        }
    }
}

/// A member of the published data that has to have a certain value.
package struct VariantCondition: Sendable, Equatable {
    /// Member names from the outside in.
    package var path: [String]
    /// Text, a number, true, false or null.
    package var value: JSONValue

    /// Numbers are compared as numbers; null also means that the member is absent.
    package func holds(in data: JSONValue) -> Bool {
        switch (value, data.member(path[...])) {
        case (.null, let found): found == nil || found == .null
        case (.int(let wanted), .double(let found)?): Double(wanted) == found
        case (.double(let wanted), .int(let found)?): wanted == Double(found)
        case (_, let found): found == value
        }
    }
}

/// The visible part of a push.
package struct NotificationTemplate: Sendable, Equatable {
    package var title: Template
    package var body: Template
    /// On Apple's devices only.
    package var subtitle: Template?
    /// The address of an image.
    package var image: Template?

    var isPersonal: Bool { title.isPersonal || body.isPersonal || subtitle?.isPersonal == true || image?.isPersonal == true }
}
