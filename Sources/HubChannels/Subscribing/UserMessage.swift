package import HubCore

/// What engines of different loops say to each other about signed-in users.
package enum UserMessage: Sendable {
    /// To the user's home: a connection is signed in as the user, or is no longer.
    case signedIn(ConnectionID, app: Int, user: String)
    case signedOut(ConnectionID, app: Int, user: String)
    /// To the home of these users: a connection wants to know their status from now on, or does not any more.
    case watch([String], app: Int, watcher: ConnectionID)
    case unwatch([String], app: Int, watcher: ConnectionID)
    /// From a home: the answer to `watch`.
    case status(watcher: ConnectionID, online: [String], offline: [String])
    /// From a home: a user came or went. `frame` says so to those watchers of the loop who have their first status already.
    case changed(user: String, isOnline: Bool, watchers: [ConnectionID], frame: [UInt8])
}
