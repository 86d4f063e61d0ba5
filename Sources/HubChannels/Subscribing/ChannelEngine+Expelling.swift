package import HubCore
package import PusherProtocol

/// Subscriptions to end, after a removal from a roster or at the end of a session.
package struct Expulsion: Sendable {
    /// A connection that holds the hub's own signature for a subscription to this channel.
    package struct Signed: Sendable {
        /// The connection that the signature is for.
        package let connection: ConnectionID
        /// The channel that the signature is for.
        package let channel: ChannelName
        /// The user that the signature is for.
        package let user: String

        /// A signature of the hub's, used or not.
        package init(connection: ConnectionID, channel: ChannelName, user: String) {
            self.connection = connection
            self.channel = channel
            self.user = user
        }
    }

    /// Selection of subscriptions, apart from those listed in `signed`.
    package enum Meant: Sendable {
        case everybody(ChannelName)
        /// Connections that stand for the user.
        case user(String, ChannelName)
        /// All channels that satisfy the predicate.
        case allOf(@Sendable (ChannelName) -> Bool)
        case nobodyElse
    }

    /// Index of the app.
    package let app: Int
    /// The subscriptions to end, besides the signed ones.
    package let meant: Meant
    /// Signed subscriptions also end if their user is unknown or the signed one. An unused signature becomes invalid.
    package let signed: [Signed]

    /// An expulsion from channels of one app.
    package init(app: Int, meant: Meant, signed: [Signed]) {
        self.app = app
        self.meant = meant
        self.signed = signed
    }
}

/// Removal of connections from channels.
///
/// A signature is valid as long as its connection. So an expelled connection is barred from the channel until the user is on the roster
/// again, or the hub signs anew for this connection. Any other connection needs its own signature.
extension ChannelEngine {
    func expel(_ expulsion: Expulsion) {
        let meant: [(Connection, Subscription)] =
            switch expulsion.meant {
            case .everybody(let channel): subscribers(of: channel, app: expulsion.app)
            case .user(let user, let channel):
                subscribers(of: channel, app: expulsion.app).filter { connection, subscription in
                    standing(of: connection, subscription).map { ExactText($0) == ExactText(user) } ?? false
                }
            case .allOf(let isMeant):
                connections.values.filter { $0.app.index == expulsion.app }.flatMap { connection in
                    connection.subscriptions.values.filter { isMeant($0.channel) }.map { (connection, $0) }
                }
            case .nobodyElse: []
            }
        for (connection, subscription) in meant { putOut(connection, of: subscription) }
        for signed in expulsion.signed {
            guard let connection = connection(signed.connection), connection.app.index == expulsion.app else { continue }
            if let subscription = connection.subscriptions[signed.channel] {
                let user = standing(of: connection, subscription).map { ExactText($0) }
                if user == nil || user == ExactText(signed.user) { putOut(connection, of: subscription) }
            } else {
                bar(connection, from: signed.channel, as: signed.user)
            }
        }
    }

    /// Includes subscriptions that are still joining.
    private func subscribers(of channel: ChannelName, app: Int) -> [(Connection, Subscription)] {
        if joiningCount == 0 {
            return (channels[app, channel]?.subscriptions ?? []).compactMap { subscription in
                connection(subscription.connection).map { ($0, subscription) }
            }
        }
        return connections.values.compactMap { connection in
            guard connection.app.index == app, let subscription = connection.subscriptions[channel] else { return nil }
            return (connection, subscription)
        }
    }

    /// User of a subscription, regardless of the channel's name; nil: unknown.
    private func standing(of connection: Connection, _ subscription: Subscription) -> String? { subscription.user ?? connection.user?.id }

    private func putOut(_ connection: Connection, of subscription: Subscription) {
        // The connection may already have been closed by an earlier removal.
        guard self.connection(connection.id) != nil else { return }
        let name = subscription.channel
        let user = standing(of: connection, subscription) ?? traits(name)?.user
        leave(connection, subscription)
        send(Self.removal(name), to: connection.id)
        bar(connection, from: name, as: user)
    }

    private func bar(_ connection: Connection, from name: ChannelName, as user: String?) {
        assert(connection.subscriptions[name] == nil, "connection \(connection.id) is barred from \(name) and subscribed to it")
        connection.barred[name] = .some(user)
        barredConnections.insert(connection.id)
        // Bound on barred channels per connection.
        if connection.barred.count > Self.subscriptionsMax { refuse(connection.id, .terminatedByApplication) }
    }

    /// Frame for an expelled connection, and for one that tries the same signature again.
    static func removal(_ channel: ChannelName) -> [UInt8] {
        ServerEvent.subscriptionError(channel: channel.text, type: "AuthError", error: removalReason, status: 403)
    }

    static let removalReason = "The participant was removed, or the session has ended: join again, and connect anew"

    /// Lifts the bar after the user's return to the roster of the channel's session.
    /// - Parameter user: nil: everybody barred from the channel.
    func readmit(app: Int, channel: ChannelName, user: String?) {
        for id in barredConnections {
            guard let connection = connection(id), connection.app.index == app, let barred = connection.barred[channel] else { continue }
            if user.map({ user in barred.map { ExactText($0) == ExactText(user) } ?? false }) ?? true { unbar(connection, from: channel) }
        }
    }

    private func unbar(_ connection: Connection, from channel: ChannelName) {
        connection.barred[channel] = nil
        if connection.barred.isEmpty { barredConnections.remove(connection.id) }
    }

    /// Delivery keeps the signature's user until a report says that the connection is gone.
    /// - Parameter channel: the signed channel; nil: a sign-in.
    func bound(_ id: ConnectionID, channel: ChannelName?) {
        guard let connection = connection(id) else { return reports.append(.disconnected(id, .clean)) }
        connection.isWatched = true
        if let channel { unbar(connection, from: channel) }
    }

    // MARK: All of a user's connections

    /// Ends every connection of the user on all loops: by sign-in, by membership, or by a subscription to a channel whose name
    /// contains the user.
    package func terminate(app: App, user: String) {
        for loop in 0..<loopCount { send(.terminate(app: app.index, user: user), to: loop) }
    }

    func endConnections(app: Int, user: String) {
        let user = ExactText(user)
        var ended = Set(connections.values.filter { $0.app.index == app && $0.stands(for: user) }.map(\.id))
        for channel in channels.all where channel.app == app && channel.isWatched {
            guard traits(channel.name)?.user.map({ ExactText($0) == user }) == true else { continue }
            ended.formUnion(channel.subscriptions.map(\.connection))
        }
        for id in ended { refuse(id, .terminatedByApplication) }
    }
}

extension Connection {
    func stands(for user: ExactText) -> Bool {
        if let own = self.user, ExactText(own.id) == user { return true }
        return subscriptions.values.contains { $0.user.map { ExactText($0) == user } ?? false }
    }
}
