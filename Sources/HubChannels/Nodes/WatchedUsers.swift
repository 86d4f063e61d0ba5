internal import HubCore

/// Users whom connections of this home watch, and whether they are signed in on any node.
///
/// The way between the nodes answers who is online as of some place. Changes behind that place are announced.
struct WatchedUsers {
    private struct Watched {
        /// Nil: unknown.
        var isOnline: Bool?
        /// Question whose answer counts; nil: none is on its way.
        var ticket: UInt64?
        /// Place of the newest answer or announcement.
        var at = StreamID.zero
        /// The newest announcement since the question.
        var kept: Announcement?
    }

    /// A connection that waits for the status of users.
    private struct Waiting {
        let watcher: ConnectionID
        let users: [UserKey]
        var unknown: Set<UserKey>
    }

    private var users: [UserKey: Watched] = [:]
    private var waiting: [Waiting] = []

    /// The status of users, for one watcher.
    struct Status {
        let watcher: ConnectionID
        var online: [String] = []
        var offline: [String] = []
    }

    /// A connection watches these users.
    /// - Returns: the users to ask for, and the status, if all of them are known.
    mutating func watch(_ keys: [UserKey], by watcher: ConnectionID, ticket: UInt64) -> (asked: [String], status: Status?) {
        var asked: [String] = []
        var unknown: Set<UserKey> = []
        for key in keys {
            if users[key] == nil { users[key] = Watched() }
            if users[key]?.isOnline != nil { continue }
            unknown.insert(key)
            guard users[key]?.ticket == nil else { continue }
            users[key]?.ticket = ticket
            asked.append(key.user)
        }
        if unknown.isEmpty { return ([], status(keys, watcher)) }
        waiting.append(Waiting(watcher: watcher, users: keys, unknown: unknown))
        return (asked, nil)
    }

    /// Nobody watches the user any more.
    mutating func forget(_ key: UserKey) { users[key] = nil }

    /// A connection watches nobody any more.
    mutating func forget(_ watcher: ConnectionID) { waiting.removeAll { $0.watcher == watcher } }

    /// Takes an answer.
    /// - Returns: changes of users who were known, and the statuses that are complete now.
    mutating func answered(
        app: Int, ticket: UInt64, at id: StreamID, _ list: [Online]
    ) -> (changes: [(key: UserKey, isOnline: Bool)], complete: [Status]) {
        var changes: [(key: UserKey, isOnline: Bool)] = []
        for entry in list {
            let key = UserKey(app: app, user: entry.user)
            guard var user = users[key], user.ticket == ticket else { continue }
            user.ticket = nil
            user.at = id
            var isOnline = entry.isOnline
            if let kept = user.kept, kept.id > id {
                isOnline = Self.isOnline(kept) ?? isOnline
                user.at = kept.id
            }
            user.kept = nil
            if let former = user.isOnline, former != isOnline { changes.append((key, isOnline)) }
            user.isOnline = isOnline
            users[key] = user
            for place in waiting.indices { waiting[place].unknown.remove(key) }
        }
        let complete = waiting.filter(\.unknown.isEmpty).map { status($0.users, $0.watcher) }
        waiting.removeAll(where: \.unknown.isEmpty)
        return (changes, complete)
    }

    /// Takes an announcement about a user.
    /// - Returns: whether the user is online now; nil: nothing has changed, or nobody knew before.
    mutating func take(_ announcement: Announcement, of key: UserKey) -> Bool? {
        guard var user = users[key], let isOnline = Self.isOnline(announcement) else { return nil }
        if user.ticket != nil {
            users[key]?.kept = announcement
            return nil
        }
        guard announcement.id > user.at else { return nil }
        let hasChanged = user.isOnline != isOnline
        (user.at, user.isOnline) = (announcement.id, isOnline)
        users[key] = user
        return hasChanged ? isOnline : nil
    }

    /// The way lost its memory: everybody is asked for anew.
    /// - Returns: the users to ask for, by app.
    mutating func restart(ticket: UInt64, isMeant: (Int) -> Bool) -> [Int: [String]] {
        var asked: [Int: [String]] = [:]
        for key in users.keys where isMeant(key.app) {
            users[key]?.ticket = ticket
            users[key]?.kept = nil
            asked[key.app, default: []].append(key.user)
        }
        return asked
    }

    private func status(_ keys: [UserKey], _ watcher: ConnectionID) -> Status {
        var status = Status(watcher: watcher)
        for key in keys { if users[key]?.isOnline == true { status.online.append(key.user) } else { status.offline.append(key.user) } }
        return status
    }

    private static func isOnline(_ announcement: Announcement) -> Bool? {
        switch announcement.event {
        case .added: true
        case .removed: false
        case .info, .occupied, .vacated, .count, .dead: nil
        }
    }
}
