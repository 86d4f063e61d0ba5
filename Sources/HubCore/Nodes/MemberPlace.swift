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
    package init?(_ text: String) {
        let parts = text.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        self.init(app: String(parts[0]), channel: String(parts[1]))
    }

    package var description: String { "\(app) \(channel)" }
}
