internal import HubCore
internal import PusherProtocol

/// Sign-in and watchlists (docs/protocol.md, 3.1 and 3.3).
extension ChannelEngine {
    /// First status of a connection's watched users, until every home has answered. One event then reports all of them,
    /// with the changes since.
    struct PendingWatchlist {
        var answersAwaited: Int
        var isOnline: [ExactText: Bool]
    }

    func signIn(_ connection: Connection, auth: String, userData: String) {
        let user: SignedInUser
        do {
            try SubscriptionAuth.verifyUser(
                auth: auth, socketID: connection.socketID, userData: userData, key: { connection.app.signers[$0] })
            user = try SignedInUser.parse(userData: userData, limits: UserLimits(), with: parser)
        } catch {
            return complain(to: connection.id, error.message)
        }
        let success = ServerEvent.signInSuccess(userData: userData)
        if let current = connection.user {
            guard ExactText(current.id) == ExactText(user.id) else {
                return complain(to: connection.id, "The connection is signed in as another user already: open a new one")
            }
            if signingIn[connection.id] == nil { send(success, to: connection.id) } else { signingIn[connection.id] = success }
            return
        }
        connection.user = user
        // It follows once all nodes can see the user.
        if nodes != nil { signingIn[connection.id] = success }
        reportIdentity(of: connection)
        let app = connection.app.index
        // The home first: after the success, the app may immediately end the user's connections via another loop.
        sendToHome(of: user.id, app: app, .signedIn(connection.id, app: app, user: user.id))
        reportBeforeAnswer()
        if nodes == nil { send(success, to: connection.id) }
        guard connection.app.watchlist else { return }
        if user.exceedsWatchlistLimit {
            complain(
                to: connection.id, code: ErrorCode.watchlistLimitExceeded,
                "The watchlist has more than \(UserLimits().watchlistMax) users: the first ones are watched")
        }
        watch(user.watchlist, for: connection)
    }

    /// Reverts the sign-in of a closing connection.
    func signOut(_ connection: Connection) {
        guard let user = connection.user else { return }
        connection.user = nil
        signingIn[connection.id] = nil
        let app = connection.app.index
        sendToHome(of: user.id, app: app, .signedOut(connection.id, app: app, user: user.id))
        guard connection.app.watchlist else { return }
        for (home, users) in byHome(user.watchlist, app: app) {
            send(.user(.unwatch(users, app: app, watcher: connection.id)), to: home)
        }
    }

    private func watch(_ users: [String], for connection: Connection) {
        guard !users.isEmpty else { return }
        let app = connection.app.index
        let homes = byHome(users, app: app)
        connection.pendingWatchlist = PendingWatchlist(answersAwaited: homes.count, isOnline: [:])
        for (home, users) in homes { send(.user(.watch(users, app: app, watcher: connection.id)), to: home) }
    }

    private func byHome(_ users: [String], app: Int) -> [Int: [String]] {
        Dictionary(grouping: users) { UserKey(app: app, user: $0).home(loopCount: loopCount) }
    }

    private func sendToHome(of user: String, app: Int, _ message: UserMessage) {
        send(.user(message), to: UserKey(app: app, user: user).home(loopCount: loopCount))
    }

    func receive(_ message: UserMessage) {
        switch message {
        case .signedIn(let connection, let app, let user):
            let key = UserKey(app: app, user: user)
            if users.signIn(connection, as: key) { firstSignIn(of: key) }
            if nodes != nil { awaitNodes(connection, as: key) }
        case .signedOut(let connection, let app, let user):
            let key = UserKey(app: app, user: user)
            if users.signOut(connection, as: key) { lastSignOut(of: key) }
        case .known(let connection):
            if let success = signingIn.removeValue(forKey: connection) { send(success, to: connection) }
        case .watch(let watched, let app, let watcher):
            if nodes != nil { return watchNodes(watched, app: app, by: watcher) }
            var (online, offline): ([String], [String]) = ([], [])
            for user in watched {
                if users.watch(UserKey(app: app, user: user), by: watcher) { online.append(user) } else { offline.append(user) }
            }
            send(.user(.status(watcher: watcher, online: online, offline: offline)), to: watcher.loop)
        case .unwatch(let watched, let app, let watcher):
            for user in watched { users.unwatch(UserKey(app: app, user: user), by: watcher) }
            if nodes != nil { unwatchNodes(watched, app: app, by: watcher) }
        case .status(let watcher, let online, let offline): firstStatus(of: watcher, online: online, offline: offline)
        case .changed(let user, let isOnline, let watchers, let frame):
            statusChanged(user, isOnline: isOnline, watchers: watchers, frame: frame)
        }
    }

    // MARK: At the user's home

    private func firstSignIn(of key: UserKey) {
        if nodes == nil { return tellWatchers(of: key, isOnline: true) }
        users.setTicket(home.shareUser(key.user, app: key.app), of: key)
    }

    private func lastSignOut(of key: UserKey) {
        if nodes != nil { home.unshareUser(key.user, app: key.app) } else { tellWatchers(of: key, isOnline: false) }
    }

    func tellWatchers(of key: UserKey, isOnline: Bool) {
        let watchers = users.watchers(of: key)
        guard !watchers.isEmpty else { return }
        let frame = Frame.text(ServerEvent.watchlistEvents(online: isOnline ? [key.user] : [], offline: isOnline ? [] : [key.user]))
        for (loop, watchers) in Dictionary(grouping: watchers, by: \.loop) {
            send(.user(.changed(user: key.user, isOnline: isOnline, watchers: watchers, frame: frame)), to: loop)
        }
    }

    // MARK: On the watcher's loop

    private func firstStatus(of watcher: ConnectionID, online: [String], offline: [String]) {
        guard let connection = connection(watcher), var pending = connection.pendingWatchlist else { return }
        for user in online { pending.isOnline[ExactText(user)] = true }
        for user in offline { pending.isOnline[ExactText(user)] = false }
        pending.answersAwaited -= 1
        assert(pending.answersAwaited >= 0, "more homes answered about the watchlist of \(watcher) than were asked")
        if pending.answersAwaited > 0 {
            connection.pendingWatchlist = pending
            return
        }
        connection.pendingWatchlist = nil
        let watchlist = connection.user?.watchlist ?? []
        send(
            ServerEvent.watchlistEvents(
                online: watchlist.filter { pending.isOnline[ExactText($0)] == true },
                offline: watchlist.filter { pending.isOnline[ExactText($0)] != true }),
            to: watcher)
    }

    private func statusChanged(_ user: String, isOnline: Bool, watchers: [ConnectionID], frame: [UInt8]) {
        for watcher in watchers {
            guard let connection = connection(watcher) else { continue }
            if connection.pendingWatchlist != nil {
                // Follows the home's answer to `watch`, so it is newer.
                connection.pendingWatchlist?.isOnline[ExactText(user)] = isOnline
            } else {
                sink.send(frame, to: watcher)
            }
        }
    }
}
