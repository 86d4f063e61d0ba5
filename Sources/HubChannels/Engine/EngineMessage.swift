package import HubCore
package import PusherProtocol

/// One event on its way to the subscribers: framed once per channel, the same bytes for every loop.
package struct Publication: Sendable {
    package var app: Int
    /// Each channel with its frame.
    package var frames: [ChannelFrame]
    /// The connection that must not get it (`socket_id` of the request).
    package var excluded: ConnectionID?
    /// The roles that get it.
    package var audience: RoleSet
    /// For an event with a policy: per loop, the last attendance ticket that was known when its surfaces were decided. Who
    /// subscribed later was decided to be absent and is told by push; the socket must not tell them again.
    package var attendedUpTo: [UInt64]?
    /// Delivery's number of an event whose receipts it waits for; nil: nobody has to confirm it.
    package var receipt: UInt64?
    /// Where it stands among all events that are cached (`AppDirectory.nextOrder`); nil: cache channels do not keep it, as
    /// they keep no client event.
    package var cacheOrder: UInt64?
    /// When it came in, in nanoseconds of the monotonic clock; 0: nobody measures how long it takes.
    package var arrivedAt: UInt64
    package var way: Way

    /// By which way an event came to the loops.
    package enum Way: String, Sendable, CaseIterable {
        /// A publish to channels without a definition: at once.
        case direct
        /// A publish that delivery decided on, and that was committed before.
        case stored
        /// A client's own event.
        case client
    }

    package init(
        app: Int, frames: [ChannelFrame], excluded: ConnectionID?, audience: RoleSet = .everybody,
        attendedUpTo: [UInt64]? = nil, receipt: UInt64? = nil, cacheOrder: UInt64? = nil, arrivedAt: UInt64 = 0, way: Way = .direct
    ) {
        self.app = app
        self.frames = frames
        self.excluded = excluded
        self.audience = audience
        self.attendedUpTo = attendedUpTo
        self.receipt = receipt
        self.cacheOrder = cacheOrder
        self.arrivedAt = arrivedAt
        self.way = way
    }
}

/// Roles as bits: whom an event is meant for, and what a subscription stands for.
package struct RoleSet: OptionSet, Sendable, Hashable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    package static let everybody = RoleSet(rawValue: .max)
    /// A subscriber that no roster knows: gets what is for everybody, and nothing that is for a role.
    package static let unmatched = RoleSet(rawValue: 1 << 31)

    /// The role at that place in its definition's list, below 31.
    package static func role(_ index: Int) -> RoleSet { RoleSet(rawValue: 1 << UInt32(index)) }
}

/// The part of a channel's definition that loops need.
package struct ChannelTraits: Sendable, Equatable {
    /// The `{user}` of the channel's name.
    package var user: String?
    /// Members that the channel may have; nil: what the app says.
    package var membersMax: Int?

    package init(user: String? = nil, membersMax: Int? = nil) {
        self.user = user
        self.membersMax = membersMax
    }
}

/// What engines of different loops say to each other. Between two loops, messages arrive in the order of sending.
package enum EngineMessage: Sendable {
    case publish(Publication)
    /// To the channel's home: a connection wants in. `serial` tells apart the subscriptions of one connection to one channel.
    case join(Membership, PresenceMember)
    case leave(Membership, user: String)
    /// From the home: let in during one turn, with the frame that acknowledges all of them.
    case admitted([Membership], acknowledgement: [UInt8])
    /// From the home: not let in.
    case refused(Membership, JoinRefusal)
    /// From the home: joined frames for every subscriber the loop has now.
    case announce(app: Int, channel: ChannelName, frame: [UInt8])
    /// To the home: the loop's number of subscribers of a channel without members changed.
    case occupancy(app: Int, channel: ChannelName, loop: Int, subscribers: Int)
    /// From delivery: the roles a connection stands for on a channel.
    case audience(ConnectionID, channel: ChannelName, RoleSet)
    case user(UserMessage)
    /// From delivery: ask these connections whether they are still alive, for the sake of that event.
    case prove(event: UInt64, [ConnectionID])
    /// From delivery: missed events for one connection, as joined frames.
    case replay(ConnectionID, channel: ChannelName, frames: [UInt8], events: [UInt64])
    /// From delivery: other channel definitions are in force.
    case definitionsChanged
    /// From delivery: subscriptions that end.
    case expel(Expulsion)
    /// From delivery: the user may come to the channel again; nil: everybody may.
    case readmit(app: Int, channel: ChannelName, user: String?)
    /// From delivery: the hub has signed for this connection, a subscription to the channel or a sign-in.
    case bound(ConnectionID, channel: ChannelName?)
    /// To every loop: the app wants all connections of the user ended.
    case terminate(app: Int, user: String)
    /// A question about channels this loop is home of.
    case query(@Sendable (HomeRegistry) -> Void)

    package struct Membership: Sendable, Hashable {
        package let app: Int
        package let channel: ChannelName
        package let connection: ConnectionID
        package let serial: UInt32
    }

    package struct JoinRefusal: Error, Sendable {
        package let reason: String
        /// HTTP-like, for `pusher:subscription_error`.
        package let status: Int
    }
}
