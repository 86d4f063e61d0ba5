internal import HubDefinitions

/// Removals from a session's channels.
extension DeliveryBook {
    /// Ends the subscriptions of people who left the roster, or of everybody in a session that is over. No later publish reaches them,
    /// because every loop has the removal before it in its mailbox.
    ///
    /// A channel without the session in its name belongs to its user. There only connections go that the hub signed for, via the user's
    /// token of the session.
    mutating func remove(_ users: [String], from session: Session, isOver: Bool) -> [Effect] {
        guard let definition = definitions.definition(named: session.definition) else { return [] }
        let pattern = definition.pattern
        let (isPerSession, isPerUser) = (pattern.placeholders.contains(.session), pattern.placeholders.contains(.user))
        var signed: [Removal.Signed] = []
        for user in users {
            guard let channel = pattern.channelName(session: session.id, user: user) else { continue }
            // A new session's token binds them anew.
            for socket in attendance.takeSockets(app: session.app, user: user) {
                signed.append(Removal.Signed(socket: socket, channel: channel, user: user))
            }
        }
        let first = users.first ?? ""
        let meant: Removal.Meant
        if !isPerSession {
            meant = .nobodyElse
        } else if isOver, isPerUser {
            meant = .session(session.id, definition: definition.name)
        } else {
            guard let channel = pattern.channelName(session: session.id, user: first) else { return [] }
            meant = isOver || isPerUser ? .everybody(channel: channel) : .user(first, channel: channel)
        }
        hasExpelled = true
        return [.expel(Removal(app: session.app, meant: meant, signed: signed))]
    }
}
