internal import HubCore

/// Names a signed-in user in a process that has several apps.
struct UserKey: Hashable {
    let app: Int
    let id: ExactText

    init(app: Int, user: String) {
        self.app = app
        id = ExactText(user)
    }

    var user: String { id.text }

    /// The loop that knows the user's connections and watchers.
    func home(loopCount: Int) -> Int {
        loopCount == 1 ? 0 : Int(UInt(bitPattern: hashValue) % UInt(loopCount))
    }
}

/// State of the users of this home loop: their signed-in connections on all loops, and the connections whose watchlists name them
/// (docs/protocol.md, 3.1 and 3.3).
struct UserRegistry {
    private final class User {
        var connections: Set<ConnectionID> = []
        var watchers: Set<ConnectionID> = []
        /// The question whether all nodes can see the user; nil: they can.
        var ticket: UInt64?
        /// Connections that wait for its answer.
        var newcomers: Set<ConnectionID> = []
    }

    private var users: [UserKey: User] = [:]

    /// - Returns: true for the user's first connection: the watchers must be informed.
    mutating func signIn(_ connection: ConnectionID, as key: UserKey) -> Bool {
        let user = entry(key)
        let isNew = user.connections.insert(connection).inserted
        assert(isNew, "connection \(connection) signs in twice")
        return user.connections.count == 1
    }

    /// - Returns: true for the user's last connection: the watchers must be informed.
    mutating func signOut(_ connection: ConnectionID, as key: UserKey) -> Bool {
        guard let user = users[key], user.connections.remove(connection) != nil else { return false }
        user.newcomers.remove(connection)
        let isGone = user.connections.isEmpty
        removeIfUnused(key, user)
        return isGone
    }

    /// The user's connections wait for the answer to a question from now on.
    mutating func setTicket(_ ticket: UInt64?, of key: UserKey) { users[key]?.ticket = ticket }

    /// - Returns: whether all nodes can see the user. If not, `takeKnown` tells of the connection.
    mutating func isKnown(_ key: UserKey, for connection: ConnectionID) -> Bool {
        guard let user = users[key], user.ticket != nil else { return true }
        user.newcomers.insert(connection)
        return false
    }

    /// All nodes can see the user now.
    /// - Returns: connections that wait for it.
    mutating func takeKnown(_ key: UserKey, ticket: UInt64) -> Set<ConnectionID> {
        guard let user = users[key], user.ticket == ticket else { return [] }
        user.ticket = nil
        defer { user.newcomers = [] }
        return user.newcomers
    }

    /// - Returns: whether the user is online.
    mutating func watch(_ key: UserKey, by connection: ConnectionID) -> Bool {
        let user = entry(key)
        user.watchers.insert(connection)
        return !user.connections.isEmpty
    }

    mutating func unwatch(_ key: UserKey, by connection: ConnectionID) {
        guard let user = users[key] else { return }
        user.watchers.remove(connection)
        removeIfUnused(key, user)
    }

    func watchers(of key: UserKey) -> Set<ConnectionID> { users[key]?.watchers ?? [] }
    var isEmpty: Bool { users.isEmpty }

    private mutating func entry(_ key: UserKey) -> User {
        if let user = users[key] { return user }
        let user = User()
        users[key] = user
        return user
    }

    private mutating func removeIfUnused(_ key: UserKey, _ user: User) {
        if user.connections.isEmpty, user.watchers.isEmpty { users[key] = nil }
    }
}
