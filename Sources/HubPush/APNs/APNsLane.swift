internal import HubCore
internal import HubCrypto
internal import HubDelivery
internal import HubHTTPClient
internal import Logging

/// One environment of APNs as one key sees it: connections, and the provider token they share. Apps with the same key share it too,
/// whatever their topics: APNs binds a connection to a team and key.
final class APNsLane: Sendable {
    /// More streams than this gain nothing: a push takes tens of milliseconds.
    static let inFlightMax = 200
    static let totalTimeout = Duration.seconds(10)

    /// What makes two lanes the same. Of the key a digest, so that nothing that prints this tells it.
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
    /// For alarms: no secrets.
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
        // APNs says 429 of one device, or of the provider token.
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
    /// The key that signs for an environment.
    func credential(_ environment: APNsEnvironment) -> APNsLane.Credential {
        let key = key(environment)
        return APNsLane.Credential(teamID: teamID, keyID: key.id, keyPEM: key.pem)
    }

    func identity(_ environment: APNsEnvironment) -> APNsLane.Identity {
        // One simulated host may stand for both environments.
        let own = environment == .sandbox ? sandboxURL ?? url : url
        return APNsLane.Identity(
            environment: environment, credential: credential(environment), url: own ?? APNsLane.host(environment), caFile: caFile)
    }
}
