package import HubCore
package import HubDelivery
package import PusherProtocol

/// An app as operators see it. Holds no secret.
package struct AppListing: Sendable {
    /// Where the app is written down.
    package enum Source: String, Sendable {
        /// In the configuration file, which is changed by hand.
        case file
        /// In the store, by an operator.
        case store
    }

    /// The app as it is in force.
    package var app: App
    package var source: Source
    /// Each key with the time in milliseconds since 1970 from which it is void; nil: none. The first one signs.
    package var keys: [(key: String, expiresAt: Int64?)]
    /// Open connections.
    package var connections: Int
    /// Whether an app of the configuration file has its id or key, so that this one is not in force.
    package var isShadowed: Bool

    package init(app: App, source: Source, keys: [(key: String, expiresAt: Int64?)], connections: Int, isShadowed: Bool) {
        self.app = app
        self.source = source
        self.keys = keys
        self.connections = connections
        self.isShadowed = isShadowed
    }
}

/// A refused change of an app: an HTTP status, and a sentence for the sender.
package struct AppRefusal: Error, Equatable {
    package let status: Int
    package let sentence: String

    package init(_ status: Int, _ sentence: String) {
        self.status = status
        self.sentence = sentence
    }
}

/// Changes apps while the hub runs. A change is durable and in force on this hub when a call returns. Any thread.
///
/// Calls throw `AppRefusal`, and the store's errors.
package protocol AppPort: Sendable {
    /// All apps, by ascending id.
    func apps() async throws -> [AppListing]
    /// - Parameter id: nil: the next free one.
    /// - Returns: the app and its key's secret, which is not shown again.
    func addApp(id: String?, settings: [AppSetting: JSONValue]) async throws -> (app: AppListing, secret: String)
    func changeApp(id: String, settings: [AppSetting: JSONValue]) async throws -> AppListing
    /// Gives an app a new key, which signs from now on.
    /// - Parameter keptMilliseconds: time for which the keys before stay valid.
    func rotateKey(app id: String, keptMilliseconds: Int64) async throws -> (app: AppListing, secret: String)
    /// Ends the app's connections, and deletes what belongs to it.
    func removeApp(id: String) async throws -> (connections: Int, remains: AppRemains)
}
