internal import Dispatch
internal import HubCore
internal import HubCrypto
internal import HubDelivery
internal import HubHTTPClient
internal import Logging

/// Credentials of one app; a provider without any has its pushes logged and not sent.
package struct PushCredentials: Sendable {
    package var apns: APNsConfiguration?
    package var fcm: FCMConfiguration?

    package init(apns: APNsConfiguration? = nil, fcm: FCMConfiguration? = nil) {
        self.apns = apns
        self.fcm = fcm
    }
}

/// All credentials: the common ones, and those of apps with their own.
package struct PushCredentialSet: Sendable {
    /// Credentials of apps without their own.
    package var common: PushCredentials
    /// Credentials by app id. Complete: parts that an app leaves to the common credentials are included.
    package var apps: [String: PushCredentials]

    package init(common: PushCredentials, apps: [String: PushCredentials] = [:]) {
        self.common = common
        self.apps = apps
    }
}

/// One lane per credential and environment, regardless of the number of apps and of reloads.
///
/// Not thread-safe: the router holds it under a lock.
final class PushLanes {
    struct APNsApp: Hashable {
        let production: APNsLane.Identity
        let sandbox: APNsLane.Identity
        let topic: String
    }

    struct FCMIdentity: Hashable {
        let accountDigest: [UInt8]
        let url: String?
        let caFile: String?
        let messagesPerMinute: Int
    }

    /// A project with one quota for all its service accounts; simulators are distinguished by address.
    struct FCMProject: Hashable {
        let id: String
        let url: String?
    }

    let reports: PushReports
    private let time: any TimeSource
    private let logger: Logger
    private var providerTokens: [APNsLane.Credential: APNsProviderToken] = [:]
    private(set) var apnsLanes: [APNsLane.Identity: PushLane] = [:]
    private(set) var apnsGateways: [APNsApp: APNsGateway] = [:]
    private(set) var fcmGateways: [FCMIdentity: FCMGateway] = [:]
    private var fcmQuotas: [FCMProject: Guarded<LaneRate>] = [:]

    init(time: any TimeSource, logger: Logger, reports: PushReports) {
        self.time = time
        self.logger = logger
        self.reports = reports
    }

    /// An app's way to one environment, over the lane of its key.
    func side(_ configuration: APNsConfiguration, _ environment: APNsEnvironment) throws(PushConfigurationError) -> APNsGateway.Side {
        let token = try providerToken(configuration, environment)
        let identity = configuration.identity(environment)
        let lane: PushLane
        if let known = apnsLanes[identity] {
            lane = known
        } else {
            lane = try APNsLane.open(identity, time: time, logger: logger, reports: reports)
            apnsLanes[identity] = lane
        }
        return APNsGateway.Side(lane, providerToken: token, topic: configuration.topic, time: time, reports: reports)
    }

    private func providerToken(
        _ configuration: APNsConfiguration, _ environment: APNsEnvironment
    ) throws(PushConfigurationError) -> APNsProviderToken {
        let credential = configuration.credential(environment)
        if let token = providerTokens[credential] { return token }
        let key: ES256PrivateKey
        do throws(CryptoError) {
            key = try ES256PrivateKey(pem: configuration.key(environment).pem)
        } catch {
            throw PushConfigurationError("the APNs key cannot be used: \(error)")
        }
        let token = APNsProviderToken(key: key, keyID: credential.keyID, teamID: credential.teamID, time: time)
        providerTokens[credential] = token
        return token
    }

    func gateway(_ configuration: APNsConfiguration) throws(PushConfigurationError) -> APNsGateway {
        let app = APNsApp(
            production: configuration.identity(.production), sandbox: configuration.identity(.sandbox), topic: configuration.topic)
        if let gateway = apnsGateways[app] { return gateway }
        let gateway = APNsGateway(
            topic: configuration.topic, production: try side(configuration, .production), sandbox: try side(configuration, .sandbox),
            time: time, logger: logger, reports: reports)
        apnsGateways[app] = gateway
        return gateway
    }

    func gateway(_ configuration: FCMConfiguration) throws(PushConfigurationError) -> FCMGateway {
        let identity = configuration.identity
        if let gateway = fcmGateways[identity] { return gateway }
        let quota = fcmQuotas[configuration.project] ?? Guarded(LaneRate(perMinute: configuration.messagesPerMinute))
        fcmQuotas[configuration.project] = quota
        let gateway = try FCMGateway(configuration, quota: quota, time: time, logger: logger, reports: reports)
        fcmGateways[identity] = gateway
        return gateway
    }

    /// Forgets projects without credentials. If credentials name different quotas for a project, the least applies.
    private func settleQuotas(_ configurations: [FCMConfiguration]) {
        let least = Dictionary(configurations.map { ($0.project, $0.messagesPerMinute) }, uniquingKeysWith: min)
        fcmQuotas = fcmQuotas.filter { least[$0.key] != nil }
        for (project, quota) in fcmQuotas { quota.withLock { $0.adopt(perMinute: least[project]) } }
    }

    /// Forgets lanes that these credentials do not use, and returns closures that close them. Provider tokens of removed keys are forgotten
    /// too. Those of unchanged keys stay, because APNs refuses a new signature within 20 minutes.
    func retire(allBut credentials: [PushCredentials]) -> [@Sendable (Duration) -> Void] {
        let apns = credentials.compactMap(\.apns)
        let identities = Set(apns.flatMap { [$0.identity(.production), $0.identity(.sandbox)] })
        let apps = Set(
            apns.map { APNsApp(production: $0.identity(.production), sandbox: $0.identity(.sandbox), topic: $0.topic) })
        let projects = Set(credentials.compactMap { $0.fcm?.identity })
        var closers: [@Sendable (Duration) -> Void] = []
        for (identity, lane) in apnsLanes where !identities.contains(identity) {
            closers.append { lane.multi.shutdown(grace: $0) }
            apnsLanes[identity] = nil
        }
        for (identity, gateway) in fcmGateways where !projects.contains(identity) {
            closers.append { gateway.shutdown(grace: $0) }
            fcmGateways[identity] = nil
        }
        settleQuotas(credentials.compactMap(\.fcm))
        apnsGateways = apnsGateways.filter { apps.contains($0.key) }
        let keys = Set(identities.map(\.credential))
        providerTokens = providerTokens.filter { keys.contains($0.key) }
        return closers
    }

    /// Lanes and gateways with connections of their own.
    var count: Int { apnsLanes.count + fcmGateways.count }

    /// Runs the closures concurrently, and returns when all have ended.
    static func close(_ closers: [@Sendable (Duration) -> Void], grace: Duration) {
        DispatchQueue.concurrentPerform(iterations: closers.count) { closers[$0](grace) }
    }
}
