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
        /// Let in during this turn, and not told yet.
        var arrivals: [EngineMessage.Membership] = []
        /// Stands in `unsettled`.
        var isUnsettled = false
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

        func takeEdges(now: UInt64) -> Presence.Edges? { presence?.takeEdges(now: now) }
    }

    private var channels: [ChannelKey: HomeChannel] = [:]
    /// Channels whose number of subscribers changed and has not been told yet.
    private var changedCounts: Set<ChannelKey> = []
    /// Presence channels in which something happened during this turn, and those in which somebody lingers.
    private var unsettled: [ChannelKey] = []
    private var lingering: Set<ChannelKey> = []
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

    /// Occupied channels.
    package var count: Int { channels.count }

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

    /// Lets a connection in, or says why not. What follows of it is told at the end of the turn (`settlePresence`).
    func join(_ membership: EngineMessage.Membership, _ member: PresenceMember, membersMax: Int) -> EngineMessage.JoinRefusal? {
        let key = ChannelKey(app: membership.app, name: membership.channel)
        let channel = channels[key] ?? HomeChannel(loopCount: loopCount)
        let outcome = channel.presence(adding: membership.connection, as: member, membersMax: membersMax)
        if outcome == .full {
            let reason = "The channel \(membership.channel.text) has its maximum of \(membersMax) members"
            return EngineMessage.JoinRefusal(reason: reason, status: 403)
        }
        let before = channel.total
        channel.subscribers[membership.connection.loop] += 1
        channel.arrivals.append(membership)
        channels[key] = channel
        noteUnsettled(channel, key)
        noteOccupancy(key, before: before, after: before + 1)
        if outcome == .first { facts.note(app: key.app, key.name, .memberAdded(user: member.userID)) }
        return nil
    }

    /// - Parameter now: on the monotonic clock.
    func leave(_ membership: EngineMessage.Membership, user: String, now: UInt64) {
        let key = ChannelKey(app: membership.app, name: membership.channel)
        let linger = apps[key.app].presenceLinger
        let lingersUntil = linger > .zero ? now + UInt64(clamping: linger.milliseconds) * 1_000_000 : 0
        guard let channel = channels[key],
            let left = channel.presence?.leave(membership.connection, user: user, lingersUntil: lingersUntil), left != .unknown
        else { return }
        channel.subscribers[membership.connection.loop] -= 1
        if left == .last { facts.note(app: key.app, key.name, .memberRemoved(user: user)) }
        noteOccupancy(key, before: channel.total + 1, after: channel.total)
        // Nobody is left to be told anything.
        if channel.total == 0 { channels[key] = nil } else { noteUnsettled(channel, key) }
    }

    private func noteUnsettled(_ channel: HomeChannel, _ key: ChannelKey) {
        guard !channel.isUnsettled else { return }
        channel.isUnsettled = true
        unsettled.append(key)
    }

    /// What a turn changed in one presence channel. Sent in this order: the frames to those who were there, so that a newcomer, who is
    /// not among its loop's subscribers yet, does not get what its acknowledgement tells already; then the newcomers.
    struct PresenceChange {
        let key: ChannelKey
        /// Joined frames, cut into pieces of `announcementBytesMax`, for every loop with a subscriber.
        let announcements: [[UInt8]]
        let listeners: [Int]
        /// Who was let in, by loop, and the one frame that acknowledges all of them; a list of members is long, and made once.
        let arrivals: [Int: [EngineMessage.Membership]]
        let acknowledgement: [UInt8]
    }

    /// A part of what one turn has to announce stays below what is written at once (`FanOut.batchBytesMax`).
    static let announcementBytesMax = 32 * 1024

    /// Something is to be told, or waits for its time.
    var hasPresenceNews: Bool { !unsettled.isEmpty || !lingering.isEmpty }

    /// What the turn changed, channel by channel. Called at its end.
    func settlePresence(now: UInt64) -> [PresenceChange] {
        for key in lingering where channels[key]?.isUnsettled != true {
            if let channel = channels[key] { noteUnsettled(channel, key) } else { lingering.remove(key) }
        }
        defer { unsettled.removeAll(keepingCapacity: true) }
        return unsettled.compactMap { settle($0, now: now) }
    }

    private func settle(_ key: ChannelKey, now: UInt64) -> PresenceChange? {
        guard let channel = channels[key], channel.isUnsettled else { return nil }
        channel.isUnsettled = false
        guard let edges = channel.takeEdges(now: now) else { return nil }
        if channel.presence?.hasLingering == true { lingering.insert(key) } else { lingering.remove(key) }
        let arrivals = channel.arrivals
        channel.arrivals.removeAll()
        if edges.isEmpty, arrivals.isEmpty { return nil }
        let members = arrivals.isEmpty ? [] : channel.presence?.snapshot() ?? []
        return PresenceChange(
            key: key, announcements: Self.frames(edges, on: key.name), listeners: channel.listeners,
            arrivals: Dictionary(grouping: arrivals) { $0.connection.loop },
            acknowledgement: arrivals.isEmpty ? [] : Frame.text(ServerEvent.presenceSucceeded(channel: key.name, members: members)))
    }

    private static func frames(_ edges: Presence.Edges, on channel: ChannelName) -> [[UInt8]] {
        let removed = edges.removed.map { Frame.text(ServerEvent.memberRemoved(channel: channel, userID: $0)) }
        let added = edges.added.map { Frame.text(ServerEvent.memberAdded(channel: channel, userID: $0.user, userInfo: $0.info)) }
        return (removed + added).reduce(into: [[UInt8]]()) { pieces, frame in
            if let last = pieces.last, last.count + frame.count <= announcementBytesMax {
                pieces[pieces.count - 1] += frame
            } else {
                pieces.append(frame)
            }
        }
    }
}
