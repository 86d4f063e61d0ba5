internal import HubCore
internal import PusherProtocol

/// The members of one presence channel, counted by user over all connections and loops. Lives on the channel's home loop.
struct Presence {
    private struct Member {
        var info: [UInt8]?
        var connections: Set<ConnectionID>
    }

    private var members: [ExactText: Member] = [:]

    var userIDs: [String] { members.keys.map(\.text) }
    var count: Int { members.count }

    enum Join: Equatable {
        /// The user's first connection: the others have to be told.
        case first
        /// One more connection of somebody who is in the list already.
        case further
        case full
    }

    /// Lets a connection in. A further connection of a member is let in even at the limit, and brings its `user_info`
    /// for those who come later.
    mutating func join(_ connection: ConnectionID, as member: PresenceMember, membersMax: Int) -> Join {
        let id = ExactText(member.userID)
        if members[id] != nil {
            members[id]?.connections.insert(connection)
            members[id]?.info = member.userInfo
            return .further
        }
        guard members.count < membersMax else { return .full }
        members[id] = Member(info: member.userInfo, connections: [connection])
        return .first
    }

    enum Leave {
        /// The connection was never let in: a refused join was on its way back when it went.
        case unknown
        /// The user has further connections.
        case further
        /// The user's last connection: the others have to be told.
        case last
    }

    mutating func leave(_ connection: ConnectionID, user: String) -> Leave {
        let id = ExactText(user)
        guard members[id]?.connections.remove(connection) != nil else { return .unknown }
        guard members[id]?.connections.isEmpty == true else { return .further }
        members[id] = nil
        return .last
    }

    /// Everybody, the joiner included, as the acknowledgement lists them.
    func snapshot() -> [(id: String, info: [UInt8]?)] {
        members.map { ($0.key.text, $0.value.info) }
    }
}
