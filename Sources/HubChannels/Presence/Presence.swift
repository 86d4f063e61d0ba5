internal import HubCore
internal import PusherProtocol

/// Members of one presence channel, counted by user over all connections and loops. Kept on the channel's home loop.
///
/// Changes of a turn are announced at its end (`takeEdges`). A member that leaves and returns within a turn causes no announcement.
/// A class, because most channels have no members, and each of them would hold room for some.
final class Presence {
    private struct Member {
        var info: [UInt8]?
        /// Empty while the member lingers: gone, but not announced.
        var connections: Set<ConnectionID>
        /// End of lingering on the monotonic clock; valid while `connections` is empty.
        var lingersUntil: UInt64 = 0
    }

    private var members: [ExactText: Member] = [:]
    /// Since the last `takeEdges`.
    private var changes = PresenceChanges()
    /// Candidates for an announcement, by time; some may have returned.
    private var lingering: [(id: ExactText, until: UInt64)] = []
    private var lingeringCount = 0

    /// Up to this many members, every leave is announced at once. Hosted Pusher has no larger channels, so no client relies on prompt
    /// announcements there. Only in larger channels do returning members outweigh the delay.
    static let promptMembersMax = 100

    var userIDs: [String] { members.filter { !$0.value.connections.isEmpty }.map(\.key.text) }
    /// Members with the loops of their connections, in no order.
    var loops: [(user: String, loops: [Int])] {
        members.compactMap { id, member in member.connections.isEmpty ? nil : (id.text, member.connections.map(\.loop).sorted()) }
    }
    var count: Int { members.count - lingeringCount }
    /// Connections of all members. O(members).
    var connectionCount: Int { members.values.reduce(0) { $0 + $1.connections.count } }
    /// Whether walking the members at every change would make filling the channel quadratic.
    var holdsMany: Bool { members.count > 64 }

    /// Whether the counts are those of the members. Walks small channels only.
    private var isConsistent: Bool {
        guard lingeringCount >= 0, lingeringCount <= lingering.count, changes.isConsistent else { return false }
        return holdsMany || members.values.count { $0.connections.isEmpty } == lingeringCount
    }

    enum Join: Equatable {
        /// The user's first connection.
        case first
        /// Another connection of a member.
        case further
        case full
    }

    /// Adds a connection. Another connection of a member is accepted even at the limit, and its `user_info` replaces the old one
    /// for future members.
    func join(_ connection: ConnectionID, as member: PresenceMember, membersMax: Int) -> Join {
        let id = ExactText(member.userID)
        let isPresent = members[id]?.connections.isEmpty == false
        guard isPresent || count < membersMax else { return .full }
        touch(id)
        if isPresent {
            let isNew = members[id]?.connections.insert(connection).inserted
            assert(isNew == true, "connection \(connection) joins twice as one member")
            members[id]?.info = member.userInfo
            return .further
        }
        if members[id] != nil { lingeringCount -= 1 }
        members[id] = Member(info: member.userInfo, connections: [connection])
        assert(isConsistent, "\(members.count) members, \(lingeringCount) of them gone")
        return .first
    }

    enum Leave {
        /// The connection was never accepted: it left before its refusal arrived.
        case unknown
        /// The user has further connections.
        case further
        /// The user's last connection.
        case last
    }

    /// - Parameter lingersUntil: time of the announcement in a large channel, on the monotonic clock; 0: at once.
    func leave(_ connection: ConnectionID, user: String, lingersUntil: UInt64) -> Leave {
        let id = ExactText(user)
        let count = self.count
        guard members[id]?.connections.remove(connection) != nil else { return .unknown }
        guard members[id]?.connections.isEmpty == true else { return .further }
        touch(id)
        // A member that joined within this turn is unknown to the others and needs no announcement.
        if count > Self.promptMembersMax, lingersUntil > 0, changes.wasTold(id) == true {
            members[id]?.lingersUntil = lingersUntil
            assert(lingering.last.map { $0.until <= lingersUntil } ?? true, "a member lingers until \(lingersUntil), before the last one")
            lingering.append((id, lingersUntil))
            lingeringCount += 1
        } else {
            members[id] = nil
        }
        assert(isConsistent, "\(members.count) members, \(lingeringCount) of them gone")
        return .last
    }

    /// Announcements at the end of a turn.
    struct Edges {
        var added: [(user: String, info: [UInt8]?)] = []
        var removed: [String] = []
        var isEmpty: Bool { added.isEmpty && removed.isEmpty }
    }

    /// Net changes since the last call.
    func takeEdges(now: UInt64) -> Edges {
        endLingering(now: now)
        return changes.take { id in (members[id] != nil, members[id]?.info) }
    }

    /// Members that left may still have to be announced.
    var hasLingering: Bool { !lingering.isEmpty }

    private func endLingering(now: UInt64) {
        guard let first = lingering.first, first.until <= now else { return }
        let end = lingering.firstIndex { $0.until > now } ?? lingering.count
        for (id, until) in lingering[..<end] {
            // Skips members that returned. If such a member left again, a later entry applies.
            guard let member = members[id], member.connections.isEmpty, member.lingersUntil == until else { continue }
            touch(id)
            members[id] = nil
            lingeringCount -= 1
        }
        lingering.removeFirst(end)
        assert(isConsistent, "\(members.count) members, \(lingeringCount) of them gone")
    }

    private func touch(_ id: ExactText) { changes.touch(id, isTold: members[id] != nil) }

    /// Members for an acknowledgement, including lingering ones, because their removal is still to be announced.
    func snapshot() -> [(id: String, info: [UInt8]?)] {
        members.map { ($0.key.text, $0.value.info) }
    }
}
