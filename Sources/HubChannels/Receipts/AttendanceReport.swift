package import HubCore
package import PusherProtocol

/// What an app says of itself.
package enum DeclaredAppState: String, Sendable, CaseIterable {
    case foreground, background
}

/// What a loop tells delivery about who is there. Sent in batches, one per turn, in the order in which it happened.
package enum AttendanceReport: Sendable, Equatable {
    /// A connection is subscribed to a channel that has a definition. `user` is its presence member id, nil elsewhere;
    /// `ticket` grows with every such report of the loop. `isBrowser`: it is a page, of which a person may have several.
    case attached(ConnectionID, SocketID, app: Int, channel: ChannelName, user: String?, isBrowser: Bool, ticket: UInt64)
    /// Definitions have changed, and the channel has one as before: perhaps another one. The ticket is the one it had.
    case stillAttached(ConnectionID, SocketID, app: Int, channel: ChannelName, user: String?)
    case detached(ConnectionID, channel: ChannelName)
    /// `keepsWorking`: in the background it goes on reading its socket and shows what comes, as it said.
    case state(ConnectionID, DeclaredAppState, keepsWorking: Bool = false)
    case disconnected(ConnectionID, Departure)
    /// Behind these events, and to everybody on this loop who got them, went a PING with that cursor; to pages, a `pusher:ping`.
    case probed(events: [UInt64], cursor: UInt64)
    /// The connections that `EngineMessage.prove` named were sent a PING with that cursor.
    case proving(event: UInt64, cursor: UInt64)
    /// The connection was sent these missed events and a PING with that cursor; 0: it was not, because its subscription had ended.
    case replayed(ConnectionID, events: [UInt64], cursor: UInt64)
    /// The peer has read everything that was written to the connection before the PING with that cursor. `byApplication`: a page
    /// answered, by `pusher:pong`; one kind of receipt is as good as the other.
    case receipt(ConnectionID, cursor: UInt64, byApplication: Bool)
    /// The answer to `EngineMessage.definitionsChanged`, behind the reports that it caused.
    case definitionsRead
}

/// How a connection went, as far as it tells whether its device will be back in a moment.
package enum Departure: Sendable, Equatable {
    /// The app closed it, or was made to.
    case clean
    /// The network or the page went: many are back within seconds.
    case abnormal
    /// Nothing had come from it for so long that it was given up.
    case silent
    /// The server sent it away to come back.
    case server
}
