package import PusherProtocol

/// Views of a loop's state, for audits that compare it with the state they expect. On the loop's thread.
extension ChannelEngine {
    /// Open connections of this loop.
    package var connectionCount: Int { connections.count }

    /// Somebody whom this loop is home of is signed in or watched.
    package var hasUsers: Bool { !users.isEmpty }

    /// This loop keeps the channel, as it does while it has subscribers.
    package func keeps(app: Int, channel: ChannelName) -> Bool { channels[app, channel] != nil }
}
