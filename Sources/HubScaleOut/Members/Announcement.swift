/// A channel of an app, or all signed-in users of an app, as Redis knows them.
package struct MemberPlace: Sendable, Hashable, CustomStringConvertible {
    /// Id of the app, without spaces.
    package let app: String
    /// Name of the channel, without spaces; empty for the app's users.
    package let channel: String

    package init(app: String, channel: String) {
        assert(!app.contains(" ") && !channel.contains(" "), "a place '\(app)' '\(channel)'")
        self.app = app
        self.channel = channel
    }

    /// - Parameter text: as in keys: app and channel.
    init?(_ text: String) {
        let parts = text.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        self.init(app: String(parts[0]), channel: String(parts[1]))
    }

    package var description: String { "\(app) \(channel)" }
}

/// A change that a script told to all nodes, once.
package struct Announcement: Sendable, Equatable {
    /// Place in the stream.
    package let id: StreamID
    /// Where it happened; nil for what concerns no channel.
    package let place: MemberPlace?
    package let event: Event

    package enum Event: Sendable, Equatable {
        /// The user's first connection of all nodes came, or the last one is gone.
        case added(user: String, info: [UInt8]?)
        case removed(user: String)
        /// The channel's first subscriber came, or the last one is gone.
        case occupied, vacated
        /// A new number of subscribers.
        case count(Int)
        /// A node was declared dead.
        case dead(node: UInt64)
    }
}
