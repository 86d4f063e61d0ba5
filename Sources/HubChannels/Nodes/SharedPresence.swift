internal import HubCore
internal import PusherProtocol

/// Members of one presence channel over all nodes, as the way between the nodes told them, and the node's own connections among them.
/// Kept on the channel's home loop.
///
/// The way answers two questions: whether a user may join (`admitted`), and who is there (`listed`). Changes after the list are announced.
/// A newcomer is acknowledged once the list is known and everything up to the admission has been heard.
/// A class, as `Presence` is: most channels have no members.
final class SharedPresence {
    /// The node's connections of one user.
    private struct Own {
        var info: [UInt8]?
        var connections: Set<ConnectionID>
        /// Question whose answer counts.
        var ticket: UInt64
        var admittedAt: StreamID?
        /// Until when a connection may be back that was sent away, on the monotonic clock.
        var returnsUntil: UInt64 = 0
    }

    /// Whether the members are known.
    private enum Listing {
        case unknown
        /// The list is on its way. Announcements since the question are kept; nil: they were too many.
        case asked(ticket: UInt64, [Announcement]?)
        case known(at: StreamID)
    }

    private typealias Newcomer = (membership: EngineMessage.Membership, user: ExactText)

    private var own: [ExactText: Own] = [:]
    /// Everybody whom the acknowledged subscribers know, or will know at the end of the turn.
    private var members: [ExactText: Member] = [:]
    private var changes = PresenceChanges()
    private var listing = Listing.unknown
    private var newcomers: [Newcomer] = []
    /// The members are those of a memory that was lost.
    private var isOfLostMemory = false
    /// Somebody was acknowledged, and hears changes.
    private var isHeard = false

    /// Announcements that are kept for a list. Beyond them another list is asked for.
    static let keptMax = 10_000

    /// Members over all nodes, those that linger included.
    var count: Int { members.count }
    var userIDs: [String] { members.values.map(\.user) }
    /// The list is neither known nor on its way.
    var isUnlisted: Bool { if case .unknown = listing { true } else { false } }
    /// Newcomers wait for an acknowledgement.
    var hasNewcomers: Bool { !newcomers.isEmpty }
    /// Connections of this node.
    var connectionCount: Int { own.values.reduce(0) { $0 + $1.connections.count } }

    // MARK: The node's own connections

    /// Whether the user was a member in a memory that was lost, as far as this node knew.
    func wasThere(_ user: String) -> Bool { isOfLostMemory && members[ExactText(user)] != nil }

    /// Adds a connection that waits for its acknowledgement.
    /// - Parameter ticket: of the question that follows from it.
    /// - Returns: whether the way has to be asked: the user is new on this node, or has another info.
    func join(_ membership: EngineMessage.Membership, _ member: PresenceMember, ticket: UInt64) -> Bool {
        let id = ExactText(member.userID)
        newcomers.append((membership, id))
        guard let known = own[id] else {
            own[id] = Own(info: member.userInfo, connections: [membership.connection], ticket: ticket)
            return true
        }
        let isNew = own[id]?.connections.insert(membership.connection).inserted
        assert(isNew == true, "connection \(membership.connection) joins twice as one member")
        own[id]?.returnsUntil = 0
        guard known.info != member.userInfo else { return false }
        own[id]?.info = member.userInfo
        own[id]?.ticket = ticket
        own[id]?.admittedAt = nil
        return true
    }

    /// Ends a connection.
    /// - Parameters:
    ///   - isSent: the server has sent it away.
    ///   - returnsWithin: time in which it is expected back then.
    ///   - now: nanoseconds of the monotonic clock.
    /// - Returns: what is left of the user, and whether this connection of theirs, or a former one, may be back soon.
    func leave(
        _ connection: ConnectionID, user: String, isSent: Bool = false, returnsWithin: Duration = .zero, now: UInt64 = 0
    ) -> (left: Presence.Leave, mayReturn: Bool) {
        let id = ExactText(user)
        guard own[id]?.connections.remove(connection) != nil else { return (.unknown, false) }
        newcomers.removeAll { $0.membership.connection == connection }
        if isSent { own[id]?.returnsUntil = now + UInt64(clamping: returnsWithin.milliseconds) * 1_000_000 }
        let mayReturn = own[id].map { $0.returnsUntil > now } ?? false
        guard own[id]?.connections.isEmpty == true else { return (.further, mayReturn) }
        own[id] = nil
        return (.last, mayReturn)
    }

    // MARK: What the way tells

    func admitted(user: String, ticket: UInt64, at id: StreamID) {
        let user = ExactText(user)
        if own[user]?.ticket == ticket { own[user]?.admittedAt = id }
    }

    /// The channel has its maximum of members.
    /// - Returns: the connections that are refused by this.
    func full(user: String, ticket: UInt64) -> [EngineMessage.Membership] {
        let user = ExactText(user)
        guard own[user]?.ticket == ticket else { return [] }
        own[user] = nil
        let refused = newcomers.filter { $0.user == user }.map(\.membership)
        newcomers.removeAll { $0.user == user }
        return refused
    }

    /// Notes that the list was asked for.
    func ask(ticket: UInt64) { listing = .asked(ticket: ticket, []) }

    /// Takes the list over. Whom it adds and leaves out is a change.
    /// - Returns: whether it is outdated already, and another one has to be asked for; and who was there in a lost memory and is gone.
    func listed(_ list: [Member], ticket: UInt64, at id: StreamID) -> (isOutdated: Bool, lost: [String]) {
        guard case .asked(let asked, let kept) = listing, asked == ticket else { return (false, []) }
        guard let kept else { return (true, []) }
        let former = members
        members = Dictionary(list.map { (ExactText($0.user), $0) }, uniquingKeysWith: { $1 })
        let gone = former.keys.filter { members[$0] == nil }
        for user in gone { changes.touch(user, isTold: true) }
        for user in members.keys where former[user] == nil { changes.touch(user, isTold: false) }
        listing = .known(at: id)
        for announcement in kept { take(announcement) }
        defer { isOfLostMemory = false }
        return (false, isOfLostMemory ? gone.map(\.text) : [])
    }

    func take(_ announcement: Announcement) {
        switch listing {
        case .unknown: return
        case .asked(let ticket, var kept):
            // The other reference goes first: an append would copy.
            listing = .unknown
            kept?.append(announcement)
            if let count = kept?.count, count > Self.keptMax { kept = nil }
            listing = .asked(ticket: ticket, kept)
        case .known(let at): if announcement.id > at { apply(announcement.event) }
        }
    }

    private func apply(_ event: Announcement.Event) {
        switch event {
        case .added(let user, let info):
            let id = ExactText(user)
            changes.touch(id, isTold: members[id] != nil)
            members[id] = Member(user: user, info: info)
        case .info(let user, let info):
            let id = ExactText(user)
            if members[id] != nil { members[id] = Member(user: user, info: info) }
        case .removed(let user):
            let id = ExactText(user)
            changes.touch(id, isTold: members[id] != nil)
            members[id] = nil
        case .occupied, .vacated, .count, .dead: return
        }
    }

    /// The way lost its memory. Everything told stands until another list comes. Every admission is asked for again under its ticket.
    func restart() {
        listing = .unknown
        isOfLostMemory = true
        for id in own.keys { own[id]?.admittedAt = nil }
    }

    // MARK: The end of a turn

    /// Net changes since the last call, for those who were acknowledged before.
    func takeEdges() -> Presence.Edges {
        let edges = changes.take { id in (members[id] != nil, members[id]?.info) }
        return isHeard ? edges : Presence.Edges()
    }

    /// Newcomers to acknowledge now, with the members as they are.
    /// - Parameter position: up to where this node has heard.
    func takeReady(position: StreamID) -> [EngineMessage.Membership] {
        guard !newcomers.isEmpty, case .known(let at) = listing else { return [] }
        let known = max(position, at)
        let isReady = { [own, members] (newcomer: Newcomer) -> Bool in
            guard let admittedAt = own[newcomer.user]?.admittedAt else { return false }
            return admittedAt <= known && members[newcomer.user] != nil
        }
        let ready = newcomers.filter(isReady).map(\.membership)
        if ready.isEmpty { return [] }
        newcomers.removeAll(where: isReady)
        isHeard = true
        return ready
    }

    /// Members for an acknowledgement.
    func snapshot() -> [(id: String, info: [UInt8]?)] { members.values.map { ($0.user, $0.info) } }
}
