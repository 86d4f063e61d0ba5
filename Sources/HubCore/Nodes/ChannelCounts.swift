/// Numbers of one occupied channel, over all nodes.
package struct ChannelCounts: Sendable, Equatable {
    package let channel: String
    package let subscribers: Int
    /// Members of a presence channel; 0 for others, and where they were not asked for.
    package var users: Int

    package init(channel: String, subscribers: Int, users: Int) {
        self.channel = channel
        self.subscribers = subscribers
        self.users = users
    }
}
