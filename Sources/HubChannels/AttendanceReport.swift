package import HubCore
package import PusherProtocol

/// What an app says of itself.
package enum DeclaredAppState: String, Sendable, CaseIterable {
    case foreground, background
}

/// What a loop tells delivery about who is there. Sent in batches, one per turn, in the order in which it happened.
package enum AttendanceReport: Sendable, Equatable {
    /// A connection is subscribed to a channel that has a definition. `user` is its presence member id, nil elsewhere;
    /// `ticket` grows with every such report of the loop.
    case attached(ConnectionID, SocketID, app: Int, channel: ChannelName, user: String?, ticket: UInt64)
    /// Definitions have changed, and the channel has one as before: perhaps another one. The ticket is the one it had.
    case stillAttached(ConnectionID, SocketID, app: Int, channel: ChannelName, user: String?)
    case detached(ConnectionID, channel: ChannelName)
    case state(ConnectionID, DeclaredAppState)
    case disconnected(ConnectionID)
    /// The answer to `EngineMessage.definitionsChanged`, behind the reports that it caused.
    case definitionsRead
}
