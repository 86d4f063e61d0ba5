internal import Foundation
internal import HubAPI
internal import HubChannels
internal import HubCore
internal import HubDelivery
internal import HubStorage
internal import HubTransport
internal import Logging
internal import PusherProtocol

/// From the configuration to the values and parts that the layers below understand.
extension Server {
    static func apps(_ configuration: Configuration) -> AppDirectory {
        var limits = ConnectionLimits()
        limits.connectionsMax = configuration.limits.connectionsMax
        limits.perAddressMax = configuration.limits.connectionsPerAddress
        return AppDirectory(
            configuration.apps.enumerated().map { index, settings in
                let secrets = settings.credentials.map { ($0.key, $0.secret) }
                var app = App(index: index, id: settings.id, secrets: Dictionary(secrets, uniquingKeysWith: { first, _ in first }))
                app.signingKey = settings.credentials.first?.key
                app.isEnabled = settings.isEnabled
                app.connectionsMax = settings.connectionsMax
                app.clientEvents = settings.clientEvents
                app.clientEventsPerSecond = settings.clientEventsPerSecond
                app.presenceMembersMax = settings.presenceMembersMax
                app.presenceLinger = settings.presenceLinger
                app.eventDataBytesMax = settings.eventDataBytesMax
                app.activityTimeoutSeconds = Int(settings.activityTimeout.components.seconds)
                app.pingInterval = settings.pingInterval
                app.pongTimeout = settings.pongTimeout
                app.allowedOrigins = settings.allowedOrigins
                app.factKinds = settings.factKinds
                app.subscriptionCount = settings.subscriptionCount
                app.watchlist = settings.watchlist
                return app
            }, limits: limits)
    }

    static func joinLimits(_ configuration: Configuration) -> JoinLimits {
        var limits = JoinLimits()
        limits.wrongCodesPerMinute = configuration.limits.wrongJoinCodesPerMinute
        limits.joinsPerMinute = configuration.limits.joinsPerMinute
        return limits
    }

    /// Where connections have to begin with the PROXY protocol, who may speak it.
    static func proxyDoor(_ configuration: Configuration) -> ProxyDoor? {
        configuration.listen.proxyProtocol ? ProxyDoor(trusted: configuration.limits.trustedProxies) : nil
    }

    /// Says once that a proxy's word is not believed, because everybody behind it then shares one address.
    static func forwarding(_ configuration: Configuration, logger: Logger) -> Forwarding {
        var forwarding = Forwarding()
        forwarding.trusted = configuration.limits.trustedProxies
        let isTold = Flag()
        forwarding.noteStranger = { peer in
            if isTold.isSet { return }
            isTold.set()
            logger.warning(
                "X-Forwarded-For came from a peer that limits.trusted_proxies does not name, and is not believed: if that is a proxy of yours, everybody behind it counts as one address",
                metadata: ["peer": "\(peer)"])
        }
        return forwarding
    }

    static func options(_ configuration: Configuration, certificate: ServerCertificate?) -> LoopOptions {
        var options = LoopOptions()
        options.certificate = certificate
        options.sendQueueBytesMax = configuration.limits.sendQueueBytesMax
        options.sendQueueBytesTotalMax = configuration.limits.sendQueueBytesTotalMax / configuration.loopCount
        // Twice the data, because escaping can double it, and room for the rest of a frame.
        options.messageBytesMax = min(2 * configuration.eventDataBytesMax + 4096, ChannelEngine.frameBytesMax)
        options.bodyBytesMax = configuration.bodyBytesMax
        // Room for four senders of the longest bodies at least.
        options.unfinishedBodiesBytesPerAddressMax = max(options.unfinishedBodiesBytesPerAddressMax, configuration.bodyBytesMax)
        options.unfinishedBodiesBytesMax = max(options.unfinishedBodiesBytesMax, 4 * options.unfinishedBodiesBytesPerAddressMax)
        options.countsConnections = configuration.limits.connectionsPerAddress > 0
        options.requestTimeoutSeconds = max(1, Int(configuration.limits.requestTimeout.components.seconds))
        return options
    }

    static func listeningSocket(_ configuration: Configuration) throws(ServerError) -> ListeningSocket {
        do {
            return try ListeningSocket(host: configuration.listen.host.value, port: configuration.listen.port.value)
        } catch {
            throw ServerError(.failed, "\(error)")
        }
    }

    static func store(_ configuration: Configuration, time: any TimeSource, logger: Logger) throws(ServerError) -> (SQLiteStore, StoreLock)
    {
        // A store that comes later is named at the start as not in force; until then everything is kept beside the other data.
        let path = if case .sqlite(let path) = configuration.store.value { path } else { configuration.data.value + "/tandem.db" }
        do {
            let lock = try StoreLock(store: path)
            let store = try SQLiteStore(path: path, time: time) { problem in
                logger.error("a stored delivery could not be read", metadata: ["error": "\(problem)"])
            }
            return (store, lock)
        } catch {
            throw ServerError(error.code == .inUse ? .badConfiguration : .failed, "\(error)")
        }
    }
}

extension Configuration {
    /// One loop for each core when nobody chose.
    var loopCount: Int { listen.loops.value ?? min(max(1, ProcessInfo.processInfo.activeProcessorCount), ConnectionID.loopsMax) }
}

extension Configuration {
    /// Nobody chose credentials: the well-known ones are in force, and may be shown.
    package var usesDefaultCredentials: Bool {
        apps.count == 1 && apps.first?.credentials == [AppCredential(key: "app-key", secret: "app-secret")]
    }

    /// Who may read `/metrics`.
    var metricsAccess: MetricsAccess {
        if let token = metrics.token { return .token(token) }
        return NetworkAddress.isLoopback(listen.host.value) ? .everybody : .nobody
    }

    /// The largest of the apps' limits.
    var eventDataBytesMax: Int { apps.map(\.eventDataBytesMax).max() ?? 0 }

    /// The longest HTTP body that some app can need.
    var bodyBytesMax: Int {
        var limits = PublishLimits()
        limits.eventDataBytesMax = eventDataBytesMax
        return max(Router.bodyBytesMin, limits.batchBodyBytesMax)
    }

    /// The store without what may be secret in its address.
    package var storeName: String {
        switch store.value {
        case .sqlite(let path): "sqlite:\(path)"
        case .postgres: "sqlite:\(data.value)/tandem.db (PostgreSQL is not yet in force)"
        }
    }
}
