internal import HubCore
internal import PusherProtocol

/// Subscribing and unsubscribing (docs/protocol.md, 2.3 to 2.6): strictly in the order of a connection's frames, also
/// where another loop has to be asked.
extension ChannelEngine {
    func subscribe(_ connection: Connection, to text: String, auth: String?, channelData: String?) {
        guard let written = ChannelName(allowingServerToUser: text) else {
            return deny(connection, channel: text, type: "InvalidChannel", ChannelName.rule, status: 400)
        }
        // One text for all subscribers of a channel.
        let name = channels[connection.app.index, written]?.name ?? written
        // A repeated subscribe changes nothing and gets no answer. A second acknowledgement would double the member list of PusherSwift,
        // and an error fails every pending call of .NET.
        guard connection.subscriptions[name] == nil else { return }
        guard connection.barred.isEmpty || connection.barred[name] == nil else {
            return deny(connection, channel: text, type: "AuthError", Self.removalReason, status: 403)
        }
        guard connection.subscriptions.count < Self.subscriptionsMax else {
            let reason = "A connection may have at most \(Self.subscriptionsMax) subscriptions"
            return deny(connection, channel: text, type: "LimitReached", reason, status: 403)
        }
        if let user = name.userID, connection.user.map({ ExactText($0.id) }) != ExactText(user) {
            return deny(
                connection, channel: text, type: "AuthError", "Only a connection that is signed in as this user may subscribe", status: 401)
        }
        var member: PresenceMember?
        if name.kind.requiresAuthorization {
            do {
                try SubscriptionAuth.verify(
                    auth: auth, socketID: connection.socketID, channel: name, channelData: channelData,
                    key: { connection.app.signers[$0] })
                if name.kind.isPresence {
                    member = try presenceMember(channelData, of: connection)
                }
            } catch {
                return deny(connection, channel: text, type: "AuthError", error.message, status: 401)
            }
        }
        if name.kind.requiresAuthorization, traits(name) != nil, !paysAttachment(connection) {
            return deny(
                connection, channel: text, type: "LimitReached", "Too many subscriptions in a short time: try again later", status: 429)
        }
        let anonymousBytes: Int
        do throws(ProtocolError) {
            anonymousBytes = try takeAnonymous(name, by: connection)
        } catch {
            return deny(connection, channel: text, type: "LimitReached", error.message, status: 403)
        }
        let subscription = Subscription(connection: connection.id, channel: name, serial: nextSerial, user: member?.userID)
        subscription.anonymousBytes = UInt32(anonymousBytes)
        nextSerial &+= 1
        connection.subscriptions[name] = subscription
        if let member {
            joiningCount += 1
            send(.join(membership(subscription, of: connection), member), to: homeLoop(app: connection.app.index, channel: name))
        } else {
            activate(subscription, of: connection, acknowledgement: Frame.text(ServerEvent.subscriptionSucceeded(channel: name)))
        }
    }

    /// The joining member: by the backend's signature, else by the connection's sign-in.
    private func presenceMember(_ channelData: String?, of connection: Connection) throws(ProtocolError) -> PresenceMember {
        if let channelData { return try PresenceMember.parse(channelData: channelData, limits: UserLimits(), with: parser) }
        guard let user = connection.user else {
            throw ProtocolError(message: "Presence channels need channel_data with a user_id, or a connection that is signed in")
        }
        return PresenceMember(userID: user.id, userInfo: user.userInfo)
    }

    /// Refuses a subscription in both forms that official clients understand. pusher-js and the mobile libraries read the second event,
    /// .NET the first. The connection stays open.
    private func deny(_ connection: Connection, channel: String, type: String, _ reason: String, status: Int) {
        complain(to: connection.id, reason)
        send(ServerEvent.subscriptionError(channel: channel, type: type, error: reason, status: status), to: connection.id)
    }

    private func activate(_ subscription: Subscription, of connection: Connection, acknowledgement: [UInt8]) {
        assert(
            subscription.isJoining && connection.subscriptions[subscription.channel] === subscription,
            "connection \(connection.id) gets a subscription to \(subscription.channel) that is over, or in force already")
        let app = connection.app.index
        let channel: Channel
        if let existing = channels[app, subscription.channel] {
            channel = existing
            // Earlier publications go to earlier subscribers only.
            unsafe fanOut.flush(channel, sink: sink)
        } else {
            let isWatched = traits(subscription.channel) != nil
            channel = Channel(app: app, name: subscription.channel, isWatched: isWatched, line: line(of: subscription.channel))
            channels.insert(channel)
        }
        if channel.isWatched { reportAttached(subscription, of: connection) }
        unsafe fanOut.makeRoom(forSlot: subscription.connection.slot)
        channel.add(subscription, isPage: connection.isBrowser)
        unsafe tally.subscriptions += 1
        if subscription.user != nil { joiningCount -= 1 }
        subscription.phase = .active(channel)
        // A member's home has counted it already. The report precedes the acknowledgement, because an acknowledged client may
        // immediately ask another loop for the count.
        if subscription.user == nil { reportOccupancy(app, subscription.channel) }
        if channel.isWatched { reportBeforeAnswer() }
        if subscription.user == nil {
            sink.send(acknowledgement, to: connection.id)
        } else {
            sink.send(list: acknowledgement, to: connection.id)
        }
        if channel.name.kind.isCache { sendCached(subscription.channel, to: connection) }
    }

    /// Line of a cache channel, whose events supersede each other for slow connections; 0 for other channels.
    private func line(of channel: ChannelName) -> UInt32 {
        guard channel.kind.isCache else { return 0 }
        nextLine = nextLine == .max ? 1 : nextLine + 1
        return nextLine
    }

    /// Reports the user of a subscription to a channel with a definition: the member, else the signed-in user.
    ///
    /// A connection's first one brings along the state that its app declared before: delivery forgets a connection with its last
    /// subscription.
    func reportAttached(_ subscription: Subscription, of connection: Connection) {
        let isFirst = !connection.subscriptions.values.contains { other in
            guard other !== subscription, other.ticket > 0, case .active(let channel) = other.phase else { return false }
            return channel.isWatched
        }
        connection.isWatched = true
        lastTicket += 1
        subscription.ticket = lastTicket
        reports.append(
            .attached(
                connection.id, connection.socketID, app: connection.app.index, channel: subscription.channel,
                user: subscription.user ?? connection.user?.id, isBrowser: connection.isBrowser, ticket: lastTicket))
        if isFirst, let declared = connection.declared {
            reports.append(.state(connection.id, declared.state, keepsWorking: declared.keepsWorking))
        }
    }

    /// Reports the signed-in user for subscriptions without a member id.
    func reportIdentity(of connection: Connection) {
        for subscription in connection.subscriptions.values where subscription.user == nil {
            guard case .active(let channel) = subscription.phase, channel.isWatched else { continue }
            unsafe fanOut.flush(channel, sink: sink)
            reportAttached(subscription, of: connection)
            channel.raiseTicket(subscription.ticket)
        }
    }

    func unsubscribe(_ connection: Connection, from text: String) {
        guard let name = ChannelName(allowingServerToUser: text), let subscription = connection.subscriptions[name] else { return }
        leave(connection, subscription)
    }

    /// Ends a subscription of a connection that stays open.
    func leave(_ connection: Connection, _ subscription: Subscription) {
        let name = subscription.channel
        connection.subscriptions[name] = nil
        if case .active(let channel) = subscription.phase, channel.isWatched {
            reports.append(.detached(connection.id, channel: name))
        }
        end(subscription, of: connection)
    }

    /// Removes a subscription from its channel, here and at its home.
    func end(_ subscription: Subscription, of connection: Connection, isSent: Bool = false) {
        if case .active(let channel) = subscription.phase {
            unsafe fanOut.flush(channel, sink: sink)
            connection.leaveBehind(subscription, of: channel)
            channel.remove(subscription)
            unsafe tally.subscriptions -= 1
            assert(unsafe tally.subscriptions >= 0, "\(unsafe tally.subscriptions) subscriptions are in force")
            channels.removeIfEmpty(channel)
        } else {
            joiningCount -= 1
        }
        giveBackAnonymous(Int(subscription.anonymousBytes), by: connection)
        let app = connection.app.index
        if let user = subscription.user {
            // Follows the join on the same path, so a join without an answer is undone as well.
            send(
                .leave(membership(subscription, of: connection), user: user, isSent: isSent),
                to: homeLoop(app: app, channel: subscription.channel))
        } else {
            reportOccupancy(app, subscription.channel)
        }
    }

    private func membership(_ subscription: Subscription, of connection: Connection) -> EngineMessage.Membership {
        EngineMessage.Membership(
            app: connection.app.index, channel: subscription.channel, connection: connection.id, serial: subscription.serial)
    }

    private func reportOccupancy(_ app: Int, _ name: ChannelName) {
        let subscribers = channels[app, name]?.count ?? 0
        send(.occupancy(app: app, channel: name, loop: loop, subscribers: subscribers), to: homeLoop(app: app, channel: name))
    }

    // MARK: At the channel's home

    func join(_ membership: EngineMessage.Membership, _ member: PresenceMember) {
        assert(homeLoop(app: membership.app, channel: membership.channel) == loop, "loop \(loop) is not home of \(membership.channel)")
        let membersMax = traits(membership.channel)?.membersMax ?? apps.apps[membership.app].presenceMembersMax
        let refusal = home.join(membership, member, membersMax: membersMax)
        if let refusal { send(.refused(membership, refusal), to: membership.connection.loop) }
    }

    func leave(_ membership: EngineMessage.Membership, user: String, isSent: Bool) {
        assert(homeLoop(app: membership.app, channel: membership.channel) == loop, "loop \(loop) is not home of \(membership.channel)")
        home.leave(membership, user: user, isSent: isSent, now: time.monotonicNanoseconds)
    }

    /// Announces this turn's changes of members, here and on the other loops.
    func announcePresence() {
        guard home.hasPresenceNews else { return }
        for change in home.settlePresence(now: time.monotonicNanoseconds) {
            for loop in change.listeners {
                for frames in change.announcements {
                    send(.announce(app: change.key.app, channel: change.key.name, frame: frames), to: loop)
                }
            }
            for (loop, memberships) in change.arrivals { send(.admitted(memberships, acknowledgement: change.acknowledgement), to: loop) }
        }
    }

    /// Announces changed numbers of subscribers.
    func announceCounts() {
        for announcement in home.takeCounts(now: time.monotonicNanoseconds) {
            for loop in announcement.loops {
                send(.announce(app: announcement.key.app, channel: announcement.key.name, frame: announcement.frame), to: loop)
            }
        }
    }

    // MARK: Back on the connection's loop

    /// Activates the joins that the channel's home accepted.
    func admitted(_ memberships: [EngineMessage.Membership], acknowledgement: [UInt8]) {
        for membership in memberships {
            guard let (connection, subscription) = joining(membership) else { continue }
            activate(subscription, of: connection, acknowledgement: acknowledgement)
        }
    }

    func refused(_ membership: EngineMessage.Membership, _ refusal: EngineMessage.JoinRefusal) {
        guard let (connection, _) = joining(membership) else { return }
        connection.subscriptions[membership.channel] = nil
        joiningCount -= 1
        deny(connection, channel: membership.channel.text, type: "LimitReached", refusal.reason, status: refusal.status)
    }

    /// Nil if the connection left, or left and returned, before the answer arrived.
    private func joining(_ membership: EngineMessage.Membership) -> (Connection, Subscription)? {
        guard let connection = connection(membership.connection),
            let subscription = connection.subscriptions[membership.channel], subscription.serial == membership.serial
        else { return nil }
        return (connection, subscription)
    }
}
