package import PusherProtocol

/// Views of a loop's state for audits. Called on the loop's thread.
extension ChannelEngine {
    /// Open connections of this loop.
    package var connectionCount: Int { connections.count }

    /// A user whose home is this loop is signed in or watched.
    package var hasUsers: Bool { !users.isEmpty }

    /// Whether the loop holds the channel, which is the case while it has subscribers.
    package func keeps(app: Int, channel: ChannelName) -> Bool { channels[app, channel] != nil }
}
