package import HubCore

/// The content of `channels/NAME.yaml`: its channels, their participants, and the policies of their events.
package struct ChannelDefinition: Sendable, Equatable {
    /// The file's name without `.yaml`.
    package var name: String
    /// The file as it was read, for messages.
    package var file: String
    /// Pattern of the channels' names.
    package var pattern: ChannelPattern
    /// Roles that participants can have; empty for none.
    package var roles: [String]
    /// Most roles: loops know a role by one of 32 bits, and the last one stands for participants without a role.
    package static let rolesMax = 31
    /// Rule of the join routes.
    package var join: JoinRule
    /// Scope of a device's signs of life (`suppress_scope`).
    package var scope: SuppressScope
    /// Whether the first receipt clears the notification on the participant's other devices.
    package var clearsSiblings: Bool
    /// Whether participants who come back to a channel are sent the missed events.
    package var replays: Bool
    /// Most members of a presence channel, and most people who join its session.
    package var membersMax: Int
    /// `membersMax` unless the file sets one.
    package static let membersMaxDefault = 10_000
    /// Largest `members_max`: a list of so many members with 1 KB each has 100 MB.
    package static let membersMaxMax = 100_000
    /// Quiet hours of visible pushes; nil for none.
    package var quietHours: QuietHours?
    /// Limits of visible pushes per participant.
    package var alerts: AlertLimits
    /// Notification channels that the Android app creates; empty if any name is allowed.
    package var androidChannels: [String]
    /// Events by name on the socket. Other events of the channel are ordinary ones.
    package var events: [String: EventDefinition]

    /// Rule by which people join a session over the join routes.
    package struct JoinRule: Sendable, Equatable {
        /// Way in which a join recognises somebody.
        package var identity: JoinIdentity
        /// Role of somebody who joins; nil for none.
        package var role: String?
        /// Whether joining needs a device that can be pushed to.
        package var requiresToken: Bool

        /// A rule that needs no token unless given.
        package init(identity: JoinIdentity, role: String?, requiresToken: Bool = false) {
            self.identity = identity
            self.role = role
            self.requiresToken = requiresToken
        }
    }
}

/// An event of a definition.
package struct EventDefinition: Sendable, Equatable {
    /// Name on the socket.
    package var name: String
    /// Members that the published data has to have.
    package var fields: [EventField]
    /// At least one variant; an event without `variants` has a single one that always applies.
    package var variants: [EventVariant]

    /// The first variant that applies to a recipient; nil if the event is not for the recipient, on no surface.
    /// - Parameters:
    ///   - user: the recipient.
    ///   - role: nil for a recipient without a role, and for a member that is on no roster.
    ///   - channelUser: value of `{user}` in the channel's name.
    ///   - data: the published data.
    package func variant(user: String, role: String?, channelUser: String?, data: JSONValue) -> EventVariant? {
        variants.first { variant in
            variant.conditions.allSatisfy { $0.holds(in: data) }
                && variant.audience.includes(user: user, role: role, channelUser: channelUser)
        }
    }
}

/// Policy and texts of an event for some of its recipients, under some conditions.
package struct EventVariant: Sendable, Equatable {
    /// Conditions that all have to hold.
    package var conditions: [VariantCondition]
    /// Recipients of the variant.
    package var audience: Audience
    /// Delivery policy.
    package var policy: Policy
    /// Lifetime from the event's commit, 5 s to 28 days.
    package var ttl: Duration
    /// Collapse key on both gateways; nil for none.
    package var group: Template?
    /// Kind of the pushes' FCM messages.
    package var kind: ContentKind
    /// Texts; present exactly if the policy makes visible pushes.
    package var notification: NotificationTemplate?
    /// Texts in other languages. A title or body that a language lacks is that of `notification`.
    package var locales: LocaleTexts
    /// Application data, an object; empty unless defined.
    package var data: TemplateJSON
    /// The platforms' blocks, as far as known before a publish.
    var platforms: PlatformContent
    /// The platforms' blocks with tags to fill in; nil without tags.
    var platformTemplates: TemplateJSON?
    /// Place among the event's variants, from 0.
    package var index: Int
    /// Line in the file, from 1.
    package var line: Int

    /// Whether the texts can differ between recipients of one event.
    package var isPersonal: Bool {
        data.isPersonal || platformTemplates?.isPersonal == true || group?.isPersonal == true || notification?.isPersonal == true
            || locales.templates.contains(where: \.isPersonal)
    }

    /// `ttl` in milliseconds.
    package var ttlMilliseconds: Int64 { ttl.milliseconds }
}

/// The recipients of an event.
package enum Audience: Sendable, Equatable {
    case all
    case roles([String])
    /// The participant that `{user}` in the channel's name stands for.
    case channelUser

    /// Whether a recipient with this role is included; `user` matters for `channelUser` only.
    package func includes(user: String, role: String?, channelUser: String?) -> Bool {
        switch self {
        case .all: true
        case .roles(let roles): role.map(roles.contains) ?? false
        case .channelUser: user == channelUser
        }
    }
}

/// A member of the published data that needs a certain value.
package struct VariantCondition: Sendable, Equatable {
    /// Member names from the outside in.
    package var path: [String]
    /// Required value: text, a number, true, false or null.
    package var value: JSONValue

    /// Whether the data has the value. Numbers are compared as numbers; null also means that the member is absent.
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
    /// Title.
    package var title: Template
    /// Text.
    package var body: Template
    /// Subtitle, for Apple's devices only; nil for none.
    package var subtitle: Template?
    /// Address of an image; nil for none.
    package var image: Template?

    var isPersonal: Bool { title.isPersonal || body.isPersonal || subtitle?.isPersonal == true || image?.isPersonal == true }
}
