internal import HubCore
internal import HubCrypto
internal import HubDelivery
internal import HubHTTPClient
internal import Logging

/// One environment of APNs for one key: its connections and their provider token. Apps with the same key share the lane regardless
/// of their topics, because APNs binds a connection to a team and key.
final class APNsLane: Sendable {
    /// More streams than this gain nothing: a push takes tens of milliseconds.
    static let inFlightMax = 200
    static let totalTimeout = Duration.seconds(10)

    /// Identity of a lane. Contains a digest of the key, so that printing reveals nothing.
    struct Identity: Hashable {
        let environment: APNsEnvironment
        let credential: Credential
        let url: String
        let caFile: String?
    }

    struct Credential: Hashable {
        let teamID: String
        let keyID: String
        let keyDigest: [UInt8]

        init(teamID: String, keyID: String, keyPEM: String) {
            self.teamID = teamID
            self.keyID = keyID
            keyDigest = Digest.sha256(Array(keyPEM.utf8))
        }
    }

    let lane: PushLane
    let providerToken: APNsProviderToken
    /// Name in alarms; no secrets.
    let name: String

    init(
        _ identity: Identity, providerToken: APNsProviderToken, time: any TimeSource, logger: Logger, reports: PushReports
    ) throws(PushConfigurationError) {
        var options = CurlOptions(name: "apns-\(identity.environment.rawValue)")
        options.inFlightMax = Self.inFlightMax
        options.inFlightMaxHTTP1 = 1
        options.primesConnections = true
        options.clearTextHTTP2 = true
        options.connectionsPerHostMax = 1
        options.totalTimeout = Self.totalTimeout
        options.connectionLifetimeMax = PushLane.connectionLifetime()
        options.caFile = identity.caFile
        options.answerHeaders = ["retry-after", "apns-id"]
        // APNs' 429 concerns one device, or the provider token.
        options.is429OfOneRecipient = true
        let name = "\(options.name) team \(identity.credential.teamID) key \(identity.credential.keyID)"
        let habits = PushLane.Habits { reports.raise(.apnsOutage, lane: name, $0) }
        lane = try PushLane(options, baseURL: identity.url, habits: habits, time: time, logger: logger)
        self.providerToken = providerToken
        self.name = name
    }

    static func host(_ environment: APNsEnvironment) -> String {
        switch environment {
        case .production: "https://api.push.apple.com"
        case .sandbox: "https://api.sandbox.push.apple.com"
        }
    }
}

extension APNsConfiguration {
    /// The key for an environment.
    func credential(_ environment: APNsEnvironment) -> APNsLane.Credential {
        let key = key(environment)
        return APNsLane.Credential(teamID: teamID, keyID: key.id, keyPEM: key.pem)
    }

    func identity(_ environment: APNsEnvironment) -> APNsLane.Identity {
        // One simulated host may serve both environments.
        let own = environment == .sandbox ? sandboxURL ?? url : url
        return APNsLane.Identity(
            environment: environment, credential: credential(environment), url: own ?? APNsLane.host(environment), caFile: caFile)
    }
}
