/// A push that a backend addressed itself, without a channel and a definition.
package enum DirectSend {
    /// What stands in an event's place for the channel: no channel can be called so, because `#` is no character of a channel's name.
    package static let channel = "#notifications"
    /// The event's name.
    package static let event = "notification"

    /// Names the deliveries of an address, which has no user and no device: `token-1`, `topic`.
    package static func nid(event: String, app: String, address: String) -> String {
        // No user id has a control character, so nobody's own notification gets this id.
        NotificationID.make(event: event, app: app, user: "\u{1}\(address)")
    }
}

/// A key under which each user of an app is sent something once for ever: a welcome.
package struct OnceKey: Sendable, Equatable {
    package var key: String
    /// Those who are sent it now.
    package var users: [String]

    package init(key: String, users: [String]) {
        self.key = key
        self.users = users
    }
}

/// Somebody was sent what is for once, since that was asked. Nothing of the call was written.
package struct AlreadySent: Error, Equatable {
    package init() {}
}

/// Who was sent what is for once. Callable from any thread.
package protocol OnceStore: Sendable {
    /// Those of the users who were sent something under the key.
    func sentOnce(app: String, key: String, users: [String]) async throws -> Set<String>
}
