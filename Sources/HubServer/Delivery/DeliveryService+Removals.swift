internal import HubChannels
internal import HubCore
internal import HubDelivery
internal import PusherProtocol

/// Removals from a session's channels, and readmissions.
extension DeliveryService {
    /// The hub signs for a connection: what it is subscribed to is this device's, and it may come where it was put out before.
    func bind(
        _ socketID: SocketID, app: String, user: String, device: String, channel: ChannelName?, _ desk: inout DecisionDesk
    ) {
        // An id that no connection of this process has is not worth remembering.
        guard let connection = process.connection(of: socketID), connection.loop < ports.count else { return }
        desk.attendance.bind(socketID: socketID.description, app: app, user: user, device: device, now: now)
        ports.post(.bound(connection, channel: channel), to: connection.loop)
    }

    /// Ends the subscriptions of people who are no participants any more, or of everybody in a session that is over. What is published
    /// behind this call reaches none of them, because every loop has this before it in its mailbox.
    ///
    /// A channel without the session in its name is its user's, not the session's. There only those connections go that the hub
    /// signed for, by the user's token of the session.
    func remove(_ users: [String], from session: Session, isOver: Bool, _ desk: inout DecisionDesk) {
        let definitions = currentDefinitions
        guard let definition = definitions.definition(named: session.definition), let app = apps.app(id: session.app)?.index else { return }
        let pattern = definition.pattern
        let (isPerSession, isPerUser) = (pattern.placeholders.contains(.session), pattern.placeholders.contains(.user))
        func channel(_ user: String) -> ChannelName? { pattern.channelName(session: session.id, user: user).flatMap { ChannelName($0) } }
        var signed: [Expulsion.Signed] = []
        for user in users {
            guard let channel = channel(user) else { continue }
            // A new session's token binds them anew.
            for socket in desk.attendance.takeSockets(app: session.app, user: user) {
                guard let connection = SocketID(socket).flatMap({ process.connection(of: $0) }) else { continue }
                signed.append(Expulsion.Signed(connection: connection, channel: channel, user: user))
            }
        }
        let meant: Expulsion.Meant
        if !isPerSession {
            meant = .nobodyElse
        } else if isOver, isPerUser {
            let (name, id) = (definition.name, session.id)
            meant = .allOf { channel in
                definitions.match(channel: channel.text).map { $0.definition.name == name && $0.placeholders.session == id } ?? false
            }
        } else {
            guard let channel = channel(users.first ?? "") else { return }
            meant = isOver || isPerUser ? .everybody(channel) : .user(users.first ?? "", channel)
        }
        desk.hasExpelled = true
        for loop in 0..<ports.count { ports.post(.expel(Expulsion(app: app, meant: meant, signed: signed)), to: loop) }
    }

    /// Somebody is on the roster again, and so may come to the channel with the signature that they have.
    func readmit(_ user: String, to channel: ChannelName, app: String, _ definition: ChannelDefinition, _ desk: DecisionDesk) {
        guard desk.hasExpelled, let app = apps.app(id: app)?.index else { return }
        let everybody = definition.pattern.placeholders.contains(.user)
        for loop in 0..<ports.count { ports.post(.readmit(app: app, channel: channel, user: everybody ? nil : user), to: loop) }
    }
}
