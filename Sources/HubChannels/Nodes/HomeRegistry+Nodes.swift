package import HubCore
internal import PusherProtocol

/// A home beside other nodes: it tells the way between the nodes of its own members and subscribers, and its subscribers of everybody's.
extension HomeRegistry {
    private func place(_ key: ChannelKey) -> MemberPlace { MemberPlace(app: apps[key.app].id, channel: key.name.text) }

    private func key(_ place: MemberPlace, app: Int) -> ChannelKey? {
        ChannelName(allowingServerToUser: place.channel).map { ChannelKey(app: app, name: $0) }
    }

    // MARK: The node's own

    func shareSubscribers(_ key: ChannelKey, _ count: Int) {
        guard key.name.kind != .serverToUser else { return }
        nodes?.hasWishes = true
        var tells: SubscriberNews = []
        if apps[key.app].factKinds.isDisjoint(with: [.occupied, .vacated]) == false { tells.insert(.occupancy) }
        if tellsCounts(key) { tells.insert(.counts) }
        nodes?.backplane.setSubscribers(place(key), count, tells: tells)
    }

    func joinNodes(
        _ membership: EngineMessage.Membership, _ member: PresenceMember, membersMax: Int, _ channel: HomeChannel, _ key: ChannelKey
    ) {
        let place = place(key)
        channel.subscribers[membership.connection.loop] += 1
        channel.membersMax = membersMax
        channels[key] = channel
        // A channel is occupied before it has a member, and vacated after its last one has left.
        shareSubscribers(key, channel.total)
        guard var nodes else { return }
        let ticket = nodes.ticket()
        let shared = channel.shared ?? SharedPresence()
        channel.shared = shared
        if shared.join(membership, member, ticket: ticket) {
            nodes.backplane.join(place, user: member.userID, info: member.userInfo, membersMax: membersMax, ticket: ticket)
        }
        if shared.isUnlisted, !nodes.isRebuilding(place.app) { ask(shared, place, &nodes) }
        nodes.waiting.insert(key)
        self.nodes = nodes
        // Where the members are known, and the user is one of them, the next turn may be long away.
        noteUnsettled(channel, key)
    }

    private func ask(_ shared: SharedPresence, _ place: MemberPlace, _ nodes: inout HomeOfNodes) {
        let ticket = nodes.ticket()
        shared.ask(ticket: ticket)
        nodes.backplane.list(place, ticket: ticket)
        nodes.hasWishes = true
    }

    func leaveNodes(
        _ membership: EngineMessage.Membership, user: String, linger: Duration, isSent: Bool, now: UInt64, _ key: ChannelKey
    ) {
        guard let channel = channels[key],
            let (left, mayReturn) = channel.shared?.leave(
                membership.connection, user: user, isSent: isSent, returnsWithin: linger, now: now), left != .unknown
        else { return }
        channel.subscribers[membership.connection.loop] -= 1
        if left == .last {
            nodes?.backplane.leave(place(key), user: user, lingerMilliseconds: Int(linger.milliseconds), lingersAlways: mayReturn)
        }
        subscribersLeft(channel, key)
    }

    /// The channel has fewer subscribers.
    private func subscribersLeft(_ channel: HomeChannel, _ key: ChannelKey) {
        assert(channel.shared?.connectionCount == channel.total, "\(key.name) has \(channel.total) subscribers and other members")
        shareSubscribers(key, channel.total)
        guard channel.total == 0 else { return }
        channels[key] = nil
        nodes?.waiting.remove(key)
    }

    /// Tells the way that the user has signed in on this node.
    /// - Returns: the ticket of the answer; nil: nobody needs to know.
    func shareUser(_ user: String, app: Int) -> UInt64? {
        guard apps[app].watchlist, let ticket = nodes?.ticket() else { return nil }
        let place = MemberPlace(app: apps[app].id, channel: "")
        nodes?.backplane.join(place, user: user, info: nil, membersMax: .max, ticket: ticket)
        nodes?.hasWishes = true
        return ticket
    }

    /// Tells the way that the user's last connection on this node is gone.
    func unshareUser(_ user: String, app: Int) {
        guard apps[app].watchlist else { return }
        let place = MemberPlace(app: apps[app].id, channel: "")
        nodes?.backplane.leave(place, user: user, lingerMilliseconds: 0, lingersAlways: false)
        nodes?.hasWishes = true
    }

    /// Asks the way who of the users is signed in.
    func askUsers(_ users: [String], app: Int, ticket: UInt64) {
        nodes?.backplane.online(users, in: MemberPlace(app: apps[app].id, channel: ""), ticket: ticket)
        nodes?.hasWishes = true
    }

    /// Whether an app's members are at one of the shards.
    func isOf(_ shards: Set<Int>, _ app: Int) -> Bool { nodes.map { shards.contains($0.backplane.shard(of: apps[app].id)) } ?? false }

    /// Asks for lists anew where a lost memory is whole again.
    /// - Parameter now: nanoseconds of the monotonic clock.
    /// - Returns: the shards that are.
    package func askAnew(now: UInt64) -> Set<Int> {
        guard var nodes else { return [] }
        let rebuilt = nodes.takeRebuilt(now: now)
        if rebuilt.isEmpty { return [] }
        for (key, channel) in channels where isOf(rebuilt, key.app) {
            noteCount(key)
            if let shared = channel.shared { ask(shared, place(key), &nodes) }
        }
        self.nodes = nodes
        return rebuilt
    }

    /// Lets the wishes of this turn go out.
    package func flushWishes() {
        guard nodes?.hasWishes == true else { return }
        nodes?.hasWishes = false
        nodes?.backplane.flush()
    }

    // MARK: What the way tells

    /// Takes what the way tells.
    /// - Parameters:
    ///   - app: index of an app by its id.
    ///   - now: nanoseconds of the monotonic clock.
    package func heard(_ report: NodeReport, now: UInt64, app: (String) -> Int?) {
        nodes?.heard(report, now: now)
        if report.startsEpoch {
            for (key, channel) in channels where nodes?.backplane.shard(of: apps[key.app].id) == report.shard { channel.shared?.restart() }
        }
        for announcement in report.announcements { heard(announcement, app: app) }
        // Newcomers may have waited for the place that is reached now.
        for key in nodes?.waiting ?? [] {
            if let channel = channels[key], channel.shared?.hasNewcomers == true {
                noteUnsettled(channel, key)
            } else {
                nodes?.waiting.remove(key)
            }
        }
    }

    private func heard(_ announcement: Announcement, app: (String) -> Int?) {
        guard let place = announcement.place, let app = app(place.app), let key = key(place, app: app), let channel = channels[key] else {
            return
        }
        switch announcement.event {
        case .count(let count):
            channel.countOfNodes = count
            if nodes?.isRebuilding(place.app) == false { noteCount(key) }
        case .occupied, .vacated, .dead: break
        case .added, .removed, .info:
            if case .added(let user, _) = announcement.event, announcement.standing == .early, channel.shared?.wasThere(user) == true {
                nodes?.backplane.known(place, user: user)
                nodes?.hasWishes = true
            }
            channel.shared?.take(announcement)
            noteUnsettled(channel, key)
        }
    }

    /// Takes an answer about members.
    /// - Parameter app: index of an app by its id.
    /// - Returns: joins that are refused by the answer.
    package func answered(_ answer: MemberAnswer, app: (String) -> Int?) -> [(EngineMessage.Membership, EngineMessage.JoinRefusal)] {
        guard let app = app(answer.place.app), let key = key(answer.place, app: app), let channel = channels[key] else { return [] }
        switch answer {
        case .admitted(_, let user, let ticket, let id): channel.shared?.admitted(user: user, ticket: ticket, at: id)
        case .list(let place, let ticket, let id, let members):
            guard let shared = channel.shared, var nodes else { break }
            let (isOutdated, lost) = shared.listed(members, ticket: ticket, at: id)
            for user in lost { nodes.backplane.missed(place, user: user) }
            if !lost.isEmpty { nodes.hasWishes = true }
            if isOutdated { ask(shared, place, &nodes) }
            self.nodes = nodes
        case .online: return []
        case .full(let place, let user, let ticket):
            let refused = channel.shared?.full(user: user, ticket: ticket) ?? []
            if refused.isEmpty { return [] }
            for membership in refused { channel.subscribers[membership.connection.loop] -= 1 }
            nodes?.backplane.leave(place, user: user, lingerMilliseconds: 0, lingersAlways: false)
            subscribersLeft(channel, key)
            return refused.map { ($0, .full(key.name, membersMax: channel.membersMax)) }
        }
        noteUnsettled(channel, key)
        return []
    }

    func settleNodes(_ channel: HomeChannel, _ key: ChannelKey) -> PresenceChange? {
        guard let nodes, let edges = channel.shared?.takeEdges() else { return nil }
        let arrivals = channel.shared?.takeReady(position: nodes.position(of: apps[key.app].id)) ?? []
        if edges.isEmpty, arrivals.isEmpty { return nil }
        let members = arrivals.isEmpty ? [] : channel.shared?.snapshot() ?? []
        return PresenceChange(
            key: key, announcements: Self.frames(edges, on: key.name), listeners: channel.listeners,
            arrivals: Dictionary(grouping: arrivals) { $0.connection.loop },
            acknowledgement: arrivals.isEmpty ? [] : Frame.text(ServerEvent.presenceSucceeded(channel: key.name, members: members)))
    }
}
