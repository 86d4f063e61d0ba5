package import HubCore
package import PusherProtocol

/// One event for its subscribers, framed once per channel. All loops share the bytes.
package struct Publication: Sendable {
    /// Index of the app.
    package var app: Int
    /// Each channel with its frame.
    package var frames: OneOrMany<ChannelFrame>
    /// The connection to skip (`socket_id` of the request).
    package var excluded: ConnectionID?
    /// The roles that receive the event.
    package var audience: RoleSet
    /// For an event with a policy: per loop, the last attendance ticket known when its surfaces were decided.
    /// Later subscribers were decided to be absent and get a push, so the socket must skip them.
    package var attendedUpTo: [UInt64]?
    /// Delivery's number of an event with receipts; nil: no receipt is awaited.
    package var receipt: UInt64?
    /// Position among all cached events (`AppDirectory.nextOrder`); nil: not cached, as for client events.
    package var cacheOrder: UInt64?
    /// Arrival in nanoseconds of the monotonic clock; 0: latency is not measured.
    package var arrivedAt: UInt64
    /// Path of the event, for metrics.
    package var way: Way

    /// Path of an event to the loops.
    package enum Way: String, Sendable, CaseIterable {
        /// Published to channels without a definition, at once.
        case direct
        /// Decided by delivery, and committed before the fan-out.
        case stored
        /// A client's own event.
        case client
    }

    /// An event with its frames, which are whole.
    package init(
        app: Int, frames: OneOrMany<ChannelFrame>, excluded: ConnectionID?, audience: RoleSet = .everybody,
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

/// The part of a channel's definition that the loops use.
package struct ChannelTraits: Sendable, Equatable {
    /// The `{user}` of the channel's name.
    package var user: String?
    /// Maximum of members; nil: the app's.
    package var membersMax: Int?

    /// Nil: the name has no user; the app's maximum holds.
    package init(user: String? = nil, membersMax: Int? = nil) {
        self.user = user
        self.membersMax = membersMax
    }
}

/// Messages between the engines of different loops. Between two loops, messages arrive in the order of sending.
package enum EngineMessage: Sendable {
    case publish(Publication)
    /// To the channel's home: a connection asks to join. `serial` distinguishes subscriptions of one connection to one channel.
    case join(Membership, PresenceMember)
    /// To the channel's home. `isSent`: the server has sent the connection away, and it will be back on another node.
    case leave(Membership, user: String, isSent: Bool)
    /// From the home: joins accepted during one turn, with one acknowledging frame for all.
    case admitted([Membership], acknowledgement: [UInt8])
    /// From the home: join refused.
    case refused(Membership, JoinRefusal)
    /// From the home: joined frames for every current subscriber of the loop.
    case announce(app: Int, channel: ChannelName, frame: [UInt8])
    /// To the home: a new number of the loop's subscribers, for a channel without members.
    case occupancy(app: Int, channel: ChannelName, loop: Int, subscribers: Int)
    /// From delivery: the roles a connection stands for on a channel.
    case audience(ConnectionID, channel: ChannelName, RoleSet)
    case user(UserMessage)
    /// From delivery: asks these connections for a sign of life, on behalf of the event.
    case prove(event: UInt64, [ConnectionID])
    /// From delivery: missed events for one connection, as joined frames.
    case replay(ConnectionID, channel: ChannelName, frames: [UInt8], events: [UInt64])
    /// From delivery: new channel definitions are in force.
    case definitionsChanged
    /// From another node's delivery: report every subscriber of a channel with a definition, then answer with the mark.
    case reportPresent(mark: UInt64)
    /// The directory has a new table of apps.
    case appsChanged
    /// From delivery: ends subscriptions.
    case expel(Expulsion)
    /// From delivery: lifts the bar for the user; nil: for everybody.
    case readmit(app: Int, channel: ChannelName, user: String?)
    /// From delivery: the hub has signed a subscription to the channel for this connection; nil: a sign-in.
    case bound(ConnectionID, channel: ChannelName?)
    /// To every loop: the app ends all connections of the user.
    case terminate(app: Int, user: String)
    /// From the way between the nodes: what was heard there.
    case heard(NodeReport)
    /// From the way between the nodes: an answer to the home of the place.
    case answered(MemberAnswer)
    /// From the way between the nodes: whether the app has room for the connection; nil: no answer in time.
    case admission(ConnectionID, app: Int, Bool?)
    /// A question to the loop, such as about channels that it is home of.
    case query(@Sendable (ChannelEngine) -> Void)

    /// One subscription to a presence channel, as its home knows it.
    package struct Membership: Sendable, Hashable {
        /// Index of the app.
        package let app: Int
        /// A presence channel.
        package let channel: ChannelName
        /// The subscriber, which names its loop.
        package let connection: ConnectionID
        /// `Subscription.serial`: distinguishes this subscription from earlier ones of the connection to the channel.
        package let serial: UInt32

        /// - Parameters:
        ///   - app: index of the app.
        ///   - channel: a presence channel.
        ///   - connection: the subscriber.
        ///   - serial: of the subscription.
        package init(app: Int, channel: ChannelName, connection: ConnectionID, serial: UInt32) {
            (self.app, self.channel, self.connection, self.serial) = (app, channel, connection, serial)
        }
    }

    /// Refusal of a join, sent to the client.
    package struct JoinRefusal: Error, Sendable {
        /// A sentence for the client.
        package let reason: String
        /// HTTP-like status for `pusher:subscription_error`.
        package let status: Int

        static func full(_ channel: ChannelName, membersMax: Int) -> JoinRefusal {
            JoinRefusal(reason: "The channel \(channel.text) has its maximum of \(membersMax) members", status: 403)
        }
    }
}
