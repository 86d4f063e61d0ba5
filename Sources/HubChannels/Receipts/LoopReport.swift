package import HubCore
package import PusherProtocol

/// App state as the client declares it.
package enum DeclaredAppState: String, Sendable, CaseIterable {
    case foreground, background
}

/// A loop's report to delivery about its connections. Reports go out in batches, one per turn, in the order of their occurrence.
package enum LoopReport: Sendable, Equatable {
    /// A connection is subscribed to a channel with a definition. `user` is the presence member id, nil elsewhere.
    /// `ticket` grows with every `attached` report of the loop. `isBrowser` marks a page; a person may have several pages.
    case attached(ConnectionID, SocketID, app: Int, channel: ChannelName, user: String?, isBrowser: Bool, ticket: UInt64)
    /// The channel still has a definition after a reload, perhaps a different one. The subscription keeps its ticket.
    case stillAttached(ConnectionID, SocketID, app: Int, channel: ChannelName, user: String?)
    case detached(ConnectionID, channel: ChannelName)
    /// `keepsWorking`: the app declares that it goes on reading its socket in the background and shows events.
    case state(ConnectionID, DeclaredAppState, keepsWorking: Bool = false)
    case disconnected(ConnectionID, Departure)
    /// A PING with this cursor went to every subscriber on this loop after these events; pages got a `pusher:ping`.
    case pinged(events: [UInt64], cursor: UInt64)
    /// A PING with this cursor went to the connections of `EngineMessage.prove`.
    case proving(event: UInt64, cursor: UInt64)
    /// These missed events and a PING with this cursor went to the connection. Cursor 0: nothing went, because the subscription had ended.
    case replayed(ConnectionID, events: [UInt64], cursor: UInt64)
    /// The peer has read everything that was written to the connection before the PING with this cursor.
    /// `byApplication`: a page answered via `pusher:pong`. Both kinds of receipt count the same.
    case receipt(ConnectionID, cursor: UInt64, byApplication: Bool)
    /// Answer to `EngineMessage.definitionsChanged`, after the reports that it caused.
    case definitionsRead
    /// A subscription of before, for a new owner of the channel; with the state that the app declared.
    case present(
        ConnectionID, SocketID, app: Int, channel: ChannelName, user: String?, isBrowser: Bool, ticket: UInt64, DeclaredAppState?,
        keepsWorking: Bool)
    /// Answer to `EngineMessage.reportPresent`, after the reports that it caused. `ticket` is the last one of the loop.
    case presentRead(mark: UInt64, ticket: UInt64)
}

/// End of a connection, as far as it predicts the device's return.
package enum Departure: Sendable, Equatable {
    /// Closed by the app, or refused by the server.
    case clean
    /// Lost network or page. Many devices return within seconds.
    case abnormal
    /// Timed out in silence.
    case silent
    /// Closed by the server, which asks the client to reconnect.
    case server
}
