internal import HubCore
internal import HubCrypto
internal import HubDelivery
internal import HubHTTPClient
internal import Logging

/// Lanes to APNs: one per environment and key. Apps with the same key share a lane regardless of their topics, because APNs binds
/// a connection to a team and key.
enum APNsLane {
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

    /// Starts the lane's thread; connections open with the first push.
    static func open(
        _ identity: Identity, time: any TimeSource, logger: Logger, reports: PushReports
    ) throws(PushConfigurationError) -> PushLane {
        var options = CurlOptions(name: "apns-\(identity.environment.rawValue)")
        options.inFlightMax = inFlightMax
        options.inFlightMaxHTTP1 = 1
        options.primesConnections = true
        options.clearTextHTTP2 = true
        options.connectionsPerHostMax = 1
        options.totalTimeout = totalTimeout
        options.connectionLifetimeMax = PushLane.connectionLifetime()
        options.caFile = identity.caFile
        options.answerHeaders = ["retry-after", "apns-id"]
        // APNs' 429 concerns one device, or the provider token.
        options.is429OfOneRecipient = true
        let title = "\(options.name) team \(identity.credential.teamID) key \(identity.credential.keyID)"
        return try PushLane(
            options, baseURL: identity.url, traits: .init(provider: .apns, title: title), time: time, logger: logger, reports: reports)
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
