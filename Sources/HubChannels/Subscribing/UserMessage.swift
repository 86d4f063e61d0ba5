package import HubCore

/// Messages between the engines of different loops about signed-in users.
package enum UserMessage: Sendable {
    /// To the user's home: a connection has signed in as the user, or is gone.
    case signedIn(ConnectionID, app: Int, user: String)
    case signedOut(ConnectionID, app: Int, user: String)
    /// From the user's home: all nodes can see that the connection is signed in.
    case known(ConnectionID)
    /// To the home of these users: a connection subscribes to their status, or ends that.
    case watch([String], app: Int, watcher: ConnectionID)
    case unwatch([String], app: Int, watcher: ConnectionID)
    /// From a home: answer to `watch`.
    case status(watcher: ConnectionID, online: [String], offline: [String])
    /// From a home: a user came or left. `frame` reports it to those watchers on the loop that already have their first status.
    case changed(user: String, isOnline: Bool, watchers: [ConnectionID], frame: [UInt8])
}
