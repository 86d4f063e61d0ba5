internal import HubCore
internal import PusherProtocol

/// The members of one presence channel, counted by user over all connections and loops. Lives on the channel's home loop.
///
/// What happens during a turn is told at its end (`takeEdges`): who left and came back within it never happened for the others, and
/// whoever came together is told of together.
struct Presence {
    private struct Member {
        var info: [UInt8]?
        /// Empty while the member lingers: gone, and not told yet.
        var connections: Set<ConnectionID>
        /// Of the last connection's end, on the monotonic clock; decides while the member lingers.
        var lingersUntil: UInt64 = 0
    }

    private var members: [ExactText: Member] = [:]
    /// Whom something happened to since the last `takeEdges`, in this order, and whether the others know them as members.
    private var touched: [ExactText] = []
    private var wasTold: [ExactText: Bool] = [:]
    /// Who may linger, in the order of their times; some may be back by then.
    private var lingering: [(id: ExactText, until: UInt64)] = []
    private var lingeringCount = 0

    /// Up to this many members everybody's leaving is told at once. Hosted Pusher has no larger channels, so there nothing can expect
    /// otherwise; and only in larger ones do returning members outweigh a moment's delay.
    static let promptMembersMax = 100

    var userIDs: [String] { members.filter { !$0.value.connections.isEmpty }.map(\.key.text) }
    var count: Int { members.count - lingeringCount }

    enum Join: Equatable {
        /// The user's first connection.
        case first
        /// One more connection of somebody who is in the list already.
        case further
        case full
    }

    /// Lets a connection in. A further connection of a member is let in even at the limit, and brings its `user_info`
    /// for those who come later.
    mutating func join(_ connection: ConnectionID, as member: PresenceMember, membersMax: Int) -> Join {
        let id = ExactText(member.userID)
        let isPresent = members[id]?.connections.isEmpty == false
        guard isPresent || count < membersMax else { return .full }
        touch(id)
        if isPresent {
            members[id]?.connections.insert(connection)
            members[id]?.info = member.userInfo
            return .further
        }
        if members[id] != nil { lingeringCount -= 1 }
        members[id] = Member(info: member.userInfo, connections: [connection])
        return .first
    }

    enum Leave {
        /// The connection was never let in: a refused join was on its way back when it went.
        case unknown
        /// The user has further connections.
        case further
        /// The user's last connection.
        case last
    }

    /// - Parameter lingersUntil: when the others are told, where the channel is large; on the monotonic clock.
    mutating func leave(_ connection: ConnectionID, user: String, lingersUntil: UInt64) -> Leave {
        let id = ExactText(user)
        let count = self.count
        guard members[id]?.connections.remove(connection) != nil else { return .unknown }
        guard members[id]?.connections.isEmpty == true else { return .further }
        touch(id)
        // Whoever came within this very turn has not been told of and need not be.
        if count > Self.promptMembersMax, lingersUntil > 0, wasTold[id] == true {
            members[id]?.lingersUntil = lingersUntil
            lingering.append((id, lingersUntil))
            lingeringCount += 1
        } else {
            members[id] = nil
        }
        return .last
    }

    /// Whom the others have to be told of, now that the turn is over.
    struct Edges {
        var added: [(user: String, info: [UInt8]?)] = []
        var removed: [String] = []
        var isEmpty: Bool { added.isEmpty && removed.isEmpty }
    }

    /// What has changed for those who were told everything so far.
    mutating func takeEdges(now: UInt64) -> Edges {
        endLingering(now: now)
        var edges = Edges()
        for id in touched {
            let wasTold = wasTold[id] == true
            let member = members[id]
            if let member, !wasTold { edges.added.append((id.text, member.info)) }
            if member == nil, wasTold { edges.removed.append(id.text) }
        }
        touched.removeAll()
        wasTold.removeAll()
        return edges
    }

    /// Somebody has left and not been told of.
    var hasLingering: Bool { !lingering.isEmpty }

    private mutating func endLingering(now: UInt64) {
        guard let first = lingering.first, first.until <= now else { return }
        let end = lingering.firstIndex { $0.until > now } ?? lingering.count
        for (id, until) in lingering[..<end] {
            // Back, or gone again later, and then with a later entry.
            guard let member = members[id], member.connections.isEmpty, member.lingersUntil == until else { continue }
            touch(id)
            members[id] = nil
            lingeringCount -= 1
        }
        lingering.removeFirst(end)
    }

    private mutating func touch(_ id: ExactText) {
        guard wasTold[id] == nil else { return }
        wasTold[id] = members[id] != nil
        touched.append(id)
    }

    /// Everybody the others know of, and whoever came since, as acknowledgements list them: also members that linger, because their
    /// removal is still to be told.
    func snapshot() -> [(id: String, info: [UInt8]?)] {
        members.map { ($0.key.text, $0.value.info) }
    }
}
