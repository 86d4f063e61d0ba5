/// A push that a backend addressed itself, without channel and definition.
package enum DirectSend {
    /// Channel of the event's row. No real channel has this name, because `#` is not allowed in names.
    package static let channel = "#notifications"
    /// Name of the event.
    package static let event = "notification"

    /// Notification id for an address such as `token-1` or `topic`, which has no user and no device.
    package static func nid(event: String, app: String, address: String) -> String {
        // No user id has a control character, so no user's notification gets this id.
        NotificationID.make(event: event, app: app, user: "\u{1}\(address)")
    }
}

/// A key under which each user of an app is sent something only once ever, such as a welcome.
package struct OnceKey: Sendable, Equatable {
    /// The key, unique in its app.
    package var key: String
    /// Users to whom the event is sent now.
    package var users: [String]

    /// A key for `EventCommit.once`.
    package init(key: String, users: [String]) {
        self.key = key
        self.users = users
    }
}

/// A user was sent something under the key since the caller asked. Nothing of the call was written.
package struct AlreadySent: Error, Equatable {
    /// An error without details.
    package init() {}
}

/// Users who were sent something only once ever. Callable from any thread.
package protocol OnceStore: Sendable {
    /// Subset of the users who were sent something under the key.
    func sentOnce(app: String, key: String, users: [String]) async throws -> Set<String>
}
