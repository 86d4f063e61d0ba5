package import HubCore

/// An app that was added while the hub ran, as stored. Removed apps keep a row, so that nobody gets their id and reads their past.
package struct AppRecord: Sendable, Equatable {
    /// A key with its secret. The secret is stored as it is: checking a signature needs it (docs/security.md).
    package struct Key: Sendable, Equatable {
        package var key: String
        package var secret: String
        /// Milliseconds since 1970 from which the key is void; nil: none.
        package var expiresAt: Int64?

        package init(key: String, secret: String, expiresAt: Int64? = nil) {
            self.key = key
            self.secret = secret
            self.expiresAt = expiresAt
        }
    }

    /// Digits.
    package var id: String
    /// The first one signs the hub's own tokens. Empty once the app is removed.
    package var keys: [Key]
    /// Settings that differ from the defaults, by the names of the configuration file.
    package var settings: [String: JSONValue]
    /// Number of the last change among all apps' changes; 0: not stored yet.
    package var revision: Int64 = 0
    /// Milliseconds since 1970.
    package var createdAt: Int64
    /// Milliseconds since 1970; nil: the app exists.
    package var removedAt: Int64?

    package init(id: String, keys: [Key], settings: [String: JSONValue] = [:], createdAt: Int64) {
        self.id = id
        self.keys = keys
        self.settings = settings
        self.createdAt = createdAt
    }
}

/// Rows that were deleted with an app.
package struct AppRemains: Sendable, Equatable {
    package var sessions = 0
    package var participants = 0
    package var devices = 0
    package var scheduled = 0

    package init() {}
}

/// The durable side of apps that are added while the hub runs: a contract for every store. Callable from any thread.
package protocol AppStore: Sendable {
    /// Apps whose revision is higher, removed ones included, by ascending revision. 0: all.
    func apps(changedAfter revision: Int64) async throws -> [AppRecord]
    /// Writes an app whose stored revision is that of `app`.
    /// - Returns: the app with its new revision; nil if somebody else has changed it, and nothing was written.
    func putApp(_ app: AppRecord) async throws -> AppRecord?
    /// Marks an app as removed, and deletes its keys, settings, sessions, participants, devices, scheduled events and once keys. Events,
    /// trails and dead letters go with their retention.
    /// - Returns: nil if there is no such app, or it is removed already.
    func removeApp(id: String, at time: Int64) async throws -> AppRemains?
}
