package import HubCore
package import PusherProtocol

/// Decisions of one loop about the channels it is home of: members, counts and announcements.
///
/// A channel's facts change rarely compared with its deliveries. So one loop keeps them, and the other loops ask by message.
/// The fan-out touches no shared state.
package final class HomeRegistry {
    /// A class, so that the member list changes in place. A copy per join would make filling a channel quadratic.
    final class HomeChannel {
        /// Subscribers per loop.
        var subscribers: [Int]
        var presence: Presence?
        /// Members over all nodes, where there are several.
        var shared: SharedPresence?
        /// Subscribers over all nodes, as they were told.
        var countOfNodes = 0
        /// Members that the channel may have, for refusals.
        var membersMax = 0
        /// Joins accepted during this turn, not acknowledged yet.
        var arrivals: [EngineMessage.Membership] = []
        /// Member of `unsettled`.
        var isUnsettled = false
        /// Time of the last count announcement, on the monotonic clock.
        var countToldAt: UInt64?
        var total: Int { subscribers.reduce(0, +) }
        /// Loops with subscribers.
        var listeners: [Int] { subscribers.indices.filter { subscribers[$0] > 0 } }

        init(loopCount: Int) {
            subscribers = Array(repeating: 0, count: loopCount)
        }

        func presence(adding connection: ConnectionID, as member: PresenceMember, membersMax: Int) -> Presence.Join {
            let presence = presence ?? Presence()
            self.presence = presence
            return presence.join(connection, as: member, membersMax: membersMax)
        }

        /// Whether the members' connections are the subscribers of all loops. Adds up the members of small channels only.
        var isConsistent: Bool {
            guard subscribers.allSatisfy({ $0 >= 0 }) else { return false }
            return presence.map { $0.holdsMany || $0.connectionCount == total } ?? true
        }

        func takeEdges(now: UInt64) -> Presence.Edges? { presence?.takeEdges(now: now) }
    }

    var channels: [ChannelKey: HomeChannel] = [:]
    /// Channels with a changed number of subscribers, not announced yet.
    var changedCounts: Set<ChannelKey> = []
    /// Presence channels with changes during this turn.
    private var unsettled: [ChannelKey] = []
    /// Presence channels with lingering members.
    private var lingering: Set<ChannelKey> = []
    /// Knowledge of the other nodes; nil where there are none.
    var nodes: HomeOfNodes?
    let loopCount: Int
    /// The apps in force, by index.
    var apps: [App]
    let facts: FactLog

    /// Above this many subscribers, counts are announced once per `countSeconds` at most.
    static let promptCountsMax = 100
    static let countSeconds: UInt64 = 5

    /// - Parameters:
    ///   - apps: in force, by index.
    ///   - loop: index of the home.
    ///   - backplane: the way to the other nodes; nil: there are none.
    package init(loopCount: Int, apps: [App], facts: FactLog, loop: Int = 0, backplane: (any Backplane)? = nil) {
        nodes = backplane.map { HomeOfNodes($0, loop: loop) }
        self.loopCount = loopCount
        self.apps = apps
        self.facts = facts
    }

    /// Occupied channels.
    package var count: Int { channels.count }

    /// State of a channel for the HTTP API.
    package struct Summary: Sendable, Equatable {
        /// Members of a presence channel; 0 for other channels.
        package var userCount: Int
        /// Subscribers on all loops.
        package var subscriptionCount: Int

        package init(userCount: Int, subscriptionCount: Int) {
            self.userCount = userCount
            self.subscriptionCount = subscriptionCount
        }
    }

    /// Nil without subscribers.
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

    /// Channels that one look for names passes: the loop serves nobody meanwhile.
    package static let namesMax = 20_000

    /// At most `limit` occupied channels of the app whose names begin with `prefix`. The one of that name comes first; others are looked
    /// for among `most` channels of the loop, in no order.
    package func names(app: Int, prefix: String, limit: Int, among most: Int = HomeRegistry.namesMax) -> [ChannelName] {
        var names: [ChannelName] = []
        if let whole = ChannelName(prefix), whole.kind != .serverToUser, channels[ChannelKey(app: app, name: whole)] != nil {
            names.append(whole)
        }
        for key in channels.keys.prefix(most) where key.app == app && key.name.text.utf8.starts(with: prefix.utf8) {
            guard names.count < limit else { break }
            if key.name.kind != .serverToUser && key.name != names.first { names.append(key.name) }
        }
        return names
    }

    /// Member ids of a presence channel; empty if there are none.
    package func users(app: Int, channel: ChannelName) -> [String] {
        channels[ChannelKey(app: app, name: channel)]?.presence.map { Array($0.userIDs) } ?? []
    }

    /// Members of a presence channel with the loops of their connections, in no order.
    package func members(app: Int, channel: ChannelName) -> [(user: String, loops: [Int])] {
        channels[ChannelKey(app: app, name: channel)]?.presence?.loops ?? []
    }

    func setOccupancy(app: Int, channel: ChannelName, loop: Int, subscribers: Int) {
        assert((0..<loopCount).contains(loop) && subscribers >= 0, "\(subscribers) subscribers of \(channel) on loop \(loop)")
        assert(!channel.kind.isPresence, "\(channel) has members, and its subscribers are told as a number")
        let key = ChannelKey(app: app, name: channel)
        let known = channels[key]
        let home = known ?? HomeChannel(loopCount: loopCount)
        let before = home.total
        home.subscribers[loop] = subscribers
        let after = home.total
        if after == 0 {
            channels[key] = nil
        } else if known == nil {
            channels[key] = home
        }
        guard before != after else { return }
        if nodes != nil { return shareSubscribers(key, after) }
        noteOccupancy(key, before: before, after: after)
        noteCount(key)
    }

    /// Notes that the subscribers are to be told their number.
    func noteCount(_ key: ChannelKey) { if tellsCounts(key) { changedCounts.insert(key) } }

    func tellsCounts(_ key: ChannelKey) -> Bool { Self.tellsCounts(of: key.name, in: apps[key.app]) }

    /// pusher-websocket-java decrypts every event of an encrypted channel, so these channels get no count.
    static func tellsCounts(of channel: ChannelName, in app: App) -> Bool {
        let kind = channel.kind
        return app.subscriptionCount && !kind.isEncrypted && !kind.isPresence && kind != .serverToUser
    }

    private func noteOccupancy(_ key: ChannelKey, before: Int, after: Int) {
        guard key.name.kind != .serverToUser else { return }
        if before == 0, after > 0 { facts.note(app: key.app, key.name, .occupied) }
        if before > 0, after == 0 { facts.note(app: key.app, key.name, .vacated) }
    }

    /// A channel's new number of subscribers, framed, with the loops to send it to.
    struct CountAnnouncement {
        let key: ChannelKey
        let frame: [UInt8]
        let loops: [Int]
    }

    /// Announcements that are due now; all others stay for later.
    func takeCounts(now: UInt64) -> [CountAnnouncement] {
        guard !changedCounts.isEmpty else { return [] }
        var announcements: [CountAnnouncement] = []
        for key in changedCounts {
            let channel = channels[key]
            let count = (nodes == nil ? channel?.total : channel?.countOfNodes) ?? 0
            // Where there are several nodes, the way between them keeps the pace.
            if nodes == nil, count > Self.promptCountsMax, let toldAt = channel?.countToldAt,
                now < toldAt + Self.countSeconds * 1_000_000_000
            {
                continue
            }
            changedCounts.remove(key)
            channel?.countToldAt = now
            if nodes == nil { facts.note(app: key.app, key.name, .subscriptionCount(count)) }
            if let channel {
                let frame = Frame.text(ServerEvent.subscriptionCount(channel: key.name, count: count))
                announcements.append(CountAnnouncement(key: key, frame: frame, loops: channel.listeners))
            }
        }
        return announcements
    }

    /// Adds a member's connection, or refuses it. Announcements and acknowledgements go out at the end of the turn (`settlePresence`).
    package func join(_ membership: EngineMessage.Membership, _ member: PresenceMember, membersMax: Int) -> EngineMessage.JoinRefusal? {
        let key = ChannelKey(app: membership.app, name: membership.channel)
        let channel = channels[key] ?? HomeChannel(loopCount: loopCount)
        if nodes != nil {
            joinNodes(membership, member, membersMax: membersMax, channel, key)
            return nil
        }
        let outcome = channel.presence(adding: membership.connection, as: member, membersMax: membersMax)
        if outcome == .full { return .full(membership.channel, membersMax: membersMax) }
        let before = channel.total
        channel.subscribers[membership.connection.loop] += 1
        channel.arrivals.append(membership)
        channels[key] = channel
        noteUnsettled(channel, key)
        noteOccupancy(key, before: before, after: before + 1)
        assert(channel.isConsistent, "\(key.name) has \(channel.total) subscribers and other members")
        if outcome == .first { facts.note(app: key.app, key.name, .memberAdded(user: member.userID)) }
        return nil
    }

    /// Ends a member's connection.
    /// - Parameters:
    ///   - isSent: the server has sent the connection away.
    ///   - now: nanoseconds of the monotonic clock.
    package func leave(_ membership: EngineMessage.Membership, user: String, isSent: Bool, now: UInt64) {
        let key = ChannelKey(app: membership.app, name: membership.channel)
        let linger = apps[key.app].presenceLinger
        if nodes != nil { return leaveNodes(membership, user: user, linger: linger, isSent: isSent, now: now, key) }
        let lingersUntil = linger > .zero ? now + UInt64(clamping: linger.milliseconds) * 1_000_000 : 0
        guard let channel = channels[key],
            let left = channel.presence?.leave(membership.connection, user: user, lingersUntil: lingersUntil), left != .unknown
        else { return }
        channel.subscribers[membership.connection.loop] -= 1
        assert(channel.isConsistent, "\(key.name) has \(channel.total) subscribers and other members")
        if left == .last { facts.note(app: key.app, key.name, .memberRemoved(user: user)) }
        noteOccupancy(key, before: channel.total + 1, after: channel.total)
        // No subscriber is left to announce the change to.
        if channel.total == 0 { channels[key] = nil } else { noteUnsettled(channel, key) }
    }

    func noteUnsettled(_ channel: HomeChannel, _ key: ChannelKey) {
        guard !channel.isUnsettled else { return }
        channel.isUnsettled = true
        unsettled.append(key)
    }

    /// Changes of one turn in one presence channel. The announcements go first, to the existing subscribers. Newcomers are not subscribed
    /// on their loop yet, so they do not get the announcements in addition to the acknowledgement.
    package struct PresenceChange {
        let key: ChannelKey
        package var channel: ChannelName { key.name }
        /// Joined frames in pieces of `announcementBytesMax`, for every loop with a subscriber.
        package let announcements: [[UInt8]]
        let listeners: [Int]
        /// Accepted joins, by loop.
        package let arrivals: [Int: [EngineMessage.Membership]]
        /// One frame that acknowledges all arrivals: a member list is long, so it is made once.
        package let acknowledgement: [UInt8]
    }

    /// Bytes per piece of an announcement; below `FanOut.batchBytesMax`.
    static let announcementBytesMax = 32 * 1024

    /// Announcements are waiting, or members linger.
    var hasPresenceNews: Bool { !unsettled.isEmpty || !lingering.isEmpty }

    /// The turn's changes by channel. Called at the end of the turn.
    /// - Parameter now: nanoseconds of the monotonic clock.
    package func settlePresence(now: UInt64) -> [PresenceChange] {
        for key in lingering where channels[key]?.isUnsettled != true {
            if let channel = channels[key] { noteUnsettled(channel, key) } else { lingering.remove(key) }
        }
        defer { unsettled.removeAll(keepingCapacity: true) }
        return unsettled.compactMap { settle($0, now: now) }
    }

    private func settle(_ key: ChannelKey, now: UInt64) -> PresenceChange? {
        guard let channel = channels[key], channel.isUnsettled else { return nil }
        channel.isUnsettled = false
        if nodes != nil { return settleNodes(channel, key) }
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

    static func frames(_ edges: Presence.Edges, on channel: ChannelName) -> [[UInt8]] {
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
