internal import HubCore
package import PusherProtocol

/// What one loop decides about the channels it is home of: who is in, how many, and whom to tell.
///
/// A channel's facts change rarely next to its deliveries, so one loop keeps them and the others ask by message; nothing
/// shared is touched while events fan out.
package final class HomeRegistry {
    private struct HomeChannel {
        /// Subscribers per loop.
        var subscribers: [Int]
        var presence: Presence?
        var total: Int { subscribers.reduce(0, +) }
    }

    private var channels: [ChannelKey: HomeChannel] = [:]
    private let loopCount: Int

    init(loopCount: Int) {
        self.loopCount = loopCount
    }

    /// What the HTTP API tells of a channel.
    package struct Summary: Sendable, Equatable {
        package var userCount: Int
        package var subscriptionCount: Int
    }

    /// Nil when nobody is subscribed.
    package func summary(app: Int, channel: ChannelName) -> Summary? {
        channels[ChannelKey(app: app, name: channel)].map { Summary(userCount: $0.presence?.count ?? 0, subscriptionCount: $0.total) }
    }

    /// The occupied channels of the app whose names begin with `prefix`.
    package func summaries(app: Int, prefix: String) -> [(channel: ChannelName, summary: Summary)] {
        channels.compactMap { key, channel in
            guard key.app == app, key.name.text.hasPrefix(prefix), key.name.kind != .serverToUser else { return nil }
            return (key.name, Summary(userCount: channel.presence?.count ?? 0, subscriptionCount: channel.total))
        }
    }

    /// Member ids of a presence channel; empty when nobody is there.
    package func users(app: Int, channel: ChannelName) -> [String] {
        channels[ChannelKey(app: app, name: channel)]?.presence.map { Array($0.userIDs) } ?? []
    }

    func setOccupancy(app: Int, channel: ChannelName, loop: Int, subscribers: Int) {
        let key = ChannelKey(app: app, name: channel)
        channels[key, default: HomeChannel(subscribers: Array(repeating: 0, count: loopCount))].subscribers[loop] = subscribers
        if channels[key]?.total == 0 { channels[key] = nil }
    }

    /// What has to be sent because of a join, in this order: the announcements first, so that the joiner, who is not among its
    /// loop's subscribers yet, does not get its own.
    struct JoinEffects {
        var announcement: (frame: [UInt8], loops: [Int])?
        var answer: Result<[UInt8], EngineMessage.JoinRefusal>
    }

    func join(_ membership: EngineMessage.Membership, _ member: PresenceMember, membersMax: Int) -> JoinEffects {
        let key = ChannelKey(app: membership.app, name: membership.channel)
        var channel = channels[key] ?? HomeChannel(subscribers: Array(repeating: 0, count: loopCount))
        var presence = channel.presence ?? Presence()
        let outcome = presence.join(membership.connection, as: member, membersMax: membersMax)
        if outcome == .full {
            let reason = "The channel \(membership.channel.text) has its maximum of \(membersMax) members"
            return JoinEffects(announcement: nil, answer: .failure(EngineMessage.JoinRefusal(reason: reason, status: 403)))
        }
        let listeners = channel.subscribers.indices.filter { channel.subscribers[$0] > 0 }
        channel.presence = presence
        channel.subscribers[membership.connection.loop] += 1
        channels[key] = channel
        let added = ServerEvent.memberAdded(channel: membership.channel, userID: member.userID, userInfo: member.userInfo)
        return JoinEffects(
            announcement: outcome == .first ? (Frame.text(added), listeners) : nil,
            answer: .success(Frame.text(ServerEvent.presenceSucceeded(channel: membership.channel, members: presence.snapshot()))))
    }

    /// The announcement that a leave causes, and the loops that have to make it.
    func leave(_ membership: EngineMessage.Membership, user: String) -> (frame: [UInt8], loops: [Int])? {
        let key = ChannelKey(app: membership.app, name: membership.channel)
        guard var channel = channels[key], var presence = channel.presence else { return nil }
        let wasLast = presence.leave(membership.connection, user: user)
        channel.presence = presence
        channel.subscribers[membership.connection.loop] -= 1
        let listeners = channel.subscribers.indices.filter { channel.subscribers[$0] > 0 }
        channels[key] = channel.total == 0 ? nil : channel
        guard wasLast, !listeners.isEmpty else { return nil }
        return (Frame.text(ServerEvent.memberRemoved(channel: membership.channel, userID: user)), listeners)
    }
}
