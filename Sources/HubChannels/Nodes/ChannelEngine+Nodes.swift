internal import HubCore
internal import PusherProtocol

/// A connection that waits for the other nodes' room.
struct Opening {
    let app: App
    let client: String?
    let address: String
}

/// A loop beside other nodes.
extension ChannelEngine {
    // MARK: Connections

    /// Counts a connection on the way between the nodes.
    /// - Returns: whether it has to wait, because its app has a limit.
    func waitsForNodes(_ connection: ConnectionID, _ app: App, client: String?, address: String) -> Bool {
        guard app.connectionsMax > 0 else {
            nodes?.count(app)
            return false
        }
        opening[connection] = Opening(app: app, client: client, address: address)
        nodes?.admit(connection, app)
        return true
    }

    func admission(of connection: ConnectionID, app: Int, _ isGranted: Bool?) {
        guard let waiting = opening.removeValue(forKey: connection) else {
            if isGranted == true { nodes?.release(apps.apps[app]) }
            return
        }
        if isGranted == true {
            return establish(connection, waiting.app, client: waiting.client, address: waiting.address)
        }
        directory.release(waiting.app, address: waiting.address)
        refuse(connection, isGranted == nil ? .overCapacity : .overConnectionQuota)
    }

    func closedBeforeAdmission(_ connection: ConnectionID) {
        guard let waiting = opening.removeValue(forKey: connection) else { return }
        directory.release(waiting.app, address: waiting.address)
    }

    func leaveNodes(_ app: App) { nodes?.release(app) }

    // MARK: Members and users

    func heard(_ report: NodeReport) {
        home.heard(report, now: time.monotonicNanoseconds) { apps.app(id: $0)?.index }
        for announcement in report.announcements {
            guard let place = announcement.place, place.channel.isEmpty, let app = apps.app(id: place.app)?.index else { continue }
            switch announcement.event {
            case .added(let user, _), .removed(let user):
                let key = UserKey(app: app, user: user)
                if let isOnline = watchedUsers.take(announcement, of: key) { tellWatchers(of: key, isOnline: isOnline) }
            case .info, .occupied, .vacated, .count, .dead: continue
            }
        }
    }

    func answered(_ answer: MemberAnswer) {
        if case .online(let place, let ticket, let id, let list) = answer {
            guard let app = apps.app(id: place.app)?.index else { return }
            let (changes, complete) = watchedUsers.answered(app: app, ticket: ticket, at: id, list)
            for change in changes { tellWatchers(of: change.key, isOnline: change.isOnline) }
            for status in complete { tell(status) }
            return
        }
        if case .admitted(let place, let user, let ticket, _) = answer, place.channel.isEmpty {
            guard let app = apps.app(id: place.app)?.index else { return }
            for connection in users.takeKnown(UserKey(app: app, user: user), ticket: ticket) { tellKnown(connection) }
            return
        }
        for (membership, refusal) in home.answered(answer, app: { apps.app(id: $0)?.index }) {
            send(.refused(membership, refusal), to: membership.connection.loop)
        }
    }

    /// The connection's success follows at once where all nodes can see its user, and else their answer.
    func awaitNodes(_ connection: ConnectionID, as key: UserKey) {
        if users.isKnown(key, for: connection) { tellKnown(connection) }
    }

    private func tellKnown(_ connection: ConnectionID) { send(.user(.known(connection)), to: connection.loop) }

    func watchNodes(_ watched: [String], app: Int, by watcher: ConnectionID) {
        let keys = watched.map { UserKey(app: app, user: $0) }
        for key in keys { _ = users.watch(key, by: watcher) }
        guard let ticket = home.nodes?.ticket() else { return }
        let (asked, status) = watchedUsers.watch(keys, by: watcher, ticket: ticket)
        if !asked.isEmpty { home.askUsers(asked, app: app, ticket: ticket) }
        if let status { tell(status) }
    }

    func unwatchNodes(_ watched: [String], app: Int, by watcher: ConnectionID) {
        watchedUsers.forget(watcher)
        for user in watched {
            let key = UserKey(app: app, user: user)
            if users.watchers(of: key).isEmpty { watchedUsers.forget(key) }
        }
    }

    private func tell(_ status: WatchedUsers.Status) {
        send(.user(.status(watcher: status.watcher, online: status.online, offline: status.offline)), to: status.watcher.loop)
    }

    // MARK: The end of a turn

    func endTurnOfNodes() {
        let rebuilt = home.askAnew(now: time.monotonicNanoseconds)
        if !rebuilt.isEmpty, let ticket = home.nodes?.ticket() {
            for (app, users) in watchedUsers.restart(ticket: ticket, isMeant: { home.isOf(rebuilt, $0) }) {
                home.askUsers(users, app: app, ticket: ticket)
            }
        }
        home.flushWishes()
    }
}
