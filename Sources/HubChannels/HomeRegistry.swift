internal import HubCore
package import PusherProtocol

/// What one loop decides about the channels it is home of: who is in, how many, and whom to tell.
///
/// A channel's facts change rarely next to its deliveries, so one loop keeps them and the others ask by message; nothing
/// shared is touched while events fan out.
package final class HomeRegistry {
    /// A class, so that a member list is changed where it is: copied with every join, filling a channel would be quadratic.
    private final class HomeChannel {
        /// Subscribers per loop.
        var subscribers: [Int]
        var presence: Presence?
        /// When the subscribers were last told how many they are, on the monotonic clock.
        var countToldAt: UInt64?
        var total: Int { subscribers.reduce(0, +) }
        /// Loops with somebody to tell.
        var listeners: [Int] { subscribers.indices.filter { subscribers[$0] > 0 } }

        init(loopCount: Int) {
            subscribers = Array(repeating: 0, count: loopCount)
        }

        func presence(adding connection: ConnectionID, as member: PresenceMember, membersMax: Int) -> Presence.Join {
            if presence == nil { presence = Presence() }
            return presence?.join(connection, as: member, membersMax: membersMax) ?? .full
        }
    }

    private var channels: [ChannelKey: HomeChannel] = [:]
    /// Channels whose number of subscribers changed and has not been told yet.
    private var changedCounts: Set<ChannelKey> = []
    private let loopCount: Int
    private let apps: [App]
    private let facts: FactLog

    /// Above this many subscribers the number is told at most every `countSeconds`.
    static let promptCountsMax = 100
    static let countSeconds: UInt64 = 5

    init(loopCount: Int, apps: [App], facts: FactLog) {
        self.loopCount = loopCount
        self.apps = apps
        self.facts = facts
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
        let home = channels[key] ?? HomeChannel(loopCount: loopCount)
        let before = home.total
        home.subscribers[loop] = subscribers
        let after = home.total
        channels[key] = after == 0 ? nil : home
        guard before != after else { return }
        noteOccupancy(key, before: before, after: after)
        // Java decrypts whatever comes on an encrypted channel.
        if apps[app].subscriptionCount, !channel.kind.isEncrypted, channel.kind != .serverToUser { changedCounts.insert(key) }
    }

    private func noteOccupancy(_ key: ChannelKey, before: Int, after: Int) {
        guard key.name.kind != .serverToUser else { return }
        if before == 0, after > 0 { facts.note(app: key.app, key.name, .occupied) }
        if before > 0, after == 0 { facts.note(app: key.app, key.name, .vacated) }
    }

    /// A number of subscribers to tell them.
    struct CountAnnouncement {
        let key: ChannelKey
        let frame: [UInt8]
        let loops: [Int]
    }

    /// The numbers that may be told now; the others stay for later.
    func takeCounts(now: UInt64) -> [CountAnnouncement] {
        guard !changedCounts.isEmpty else { return [] }
        var announcements: [CountAnnouncement] = []
        for key in changedCounts {
            let channel = channels[key]
            let count = channel?.total ?? 0
            if count > Self.promptCountsMax, let toldAt = channel?.countToldAt, now < toldAt + Self.countSeconds * 1_000_000_000 {
                continue
            }
            changedCounts.remove(key)
            channel?.countToldAt = now
            facts.note(app: key.app, key.name, .subscriptionCount(count))
            if let channel {
                let frame = Frame.text(ServerEvent.subscriptionCount(channel: key.name, count: count))
                announcements.append(CountAnnouncement(key: key, frame: frame, loops: channel.listeners))
            }
        }
        return announcements
    }

    /// What has to be sent because of a join, in this order: the announcements first, so that the joiner, who is not among its
    /// loop's subscribers yet, does not get its own.
    struct JoinEffects {
        var announcement: (frame: [UInt8], loops: [Int])?
        var answer: Result<[UInt8], EngineMessage.JoinRefusal>
    }

    func join(_ membership: EngineMessage.Membership, _ member: PresenceMember, membersMax: Int) -> JoinEffects {
        let key = ChannelKey(app: membership.app, name: membership.channel)
        let channel = channels[key] ?? HomeChannel(loopCount: loopCount)
        let outcome = channel.presence(adding: membership.connection, as: member, membersMax: membersMax)
        if outcome == .full {
            let reason = "The channel \(membership.channel.text) has its maximum of \(membersMax) members"
            return JoinEffects(announcement: nil, answer: .failure(EngineMessage.JoinRefusal(reason: reason, status: 403)))
        }
        let listeners = channel.listeners
        let before = channel.total
        channel.subscribers[membership.connection.loop] += 1
        channels[key] = channel
        noteOccupancy(key, before: before, after: before + 1)
        if outcome == .first { facts.note(app: key.app, key.name, .memberAdded(user: member.userID)) }
        let added = ServerEvent.memberAdded(channel: membership.channel, userID: member.userID, userInfo: member.userInfo)
        let members = channel.presence?.snapshot() ?? []
        return JoinEffects(
            announcement: outcome == .first ? (Frame.text(added), listeners) : nil,
            answer: .success(Frame.text(ServerEvent.presenceSucceeded(channel: membership.channel, members: members))))
    }

    /// The announcement that a leave causes, and the loops that have to make it.
    func leave(_ membership: EngineMessage.Membership, user: String) -> (frame: [UInt8], loops: [Int])? {
        let key = ChannelKey(app: membership.app, name: membership.channel)
        guard let channel = channels[key], let left = channel.presence?.leave(membership.connection, user: user), left != .unknown
        else { return nil }
        channel.subscribers[membership.connection.loop] -= 1
        if left == .last { facts.note(app: key.app, key.name, .memberRemoved(user: user)) }
        noteOccupancy(key, before: channel.total + 1, after: channel.total)
        if channel.total == 0 { channels[key] = nil }
        let listeners = channel.listeners
        guard left == .last, !listeners.isEmpty else { return nil }
        return (Frame.text(ServerEvent.memberRemoved(channel: membership.channel, userID: user)), listeners)
    }
}
