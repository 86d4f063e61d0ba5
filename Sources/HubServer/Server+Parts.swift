internal import HubAPI
internal import HubChannels
internal import HubConfiguration
internal import HubCore
internal import HubDelivery
internal import HubStorage
internal import HubTransport
internal import Logging
internal import PusherProtocol

/// Parts of the server, and values for the layers below, made from the configuration.
extension Server {
    static func apps(_ configuration: Configuration) -> AppDirectory {
        var limits = ConnectionLimits()
        limits.connectionsMax = configuration.limits.connectionsMax
        limits.perAddressMax = configuration.limits.connectionsPerAddress
        return AppDirectory(configuration.apps.enumerated().map { App($1, index: $0) }, limits: limits)
    }

    static func joinLimits(_ configuration: Configuration) -> JoinLimits {
        var limits = JoinLimits()
        limits.wrongCodesPerMinute = configuration.limits.wrongJoinCodesPerMinute
        limits.joinsPerMinute = configuration.limits.joinsPerMinute
        return limits
    }

    /// The peers that may speak the PROXY protocol, if connections have to begin with it; nil otherwise.
    static func proxyDoor(_ configuration: Configuration) -> ProxyDoor? {
        configuration.listen.proxyProtocol ? ProxyDoor(trusted: configuration.limits.trustedProxies) : nil
    }

    /// Trusted proxies. Logs once that an unknown peer's X-Forwarded-For is ignored, because all its clients then share one address.
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
        // Escaping can double the data; the rest is for the other members of a frame.
        options.messageBytesMax = min(2 * configuration.eventDataBytesMax + 4096, ChannelEngine.frameBytesMax)
        options.bodyBytesMax = configuration.bodyBytesMax
        // Room for at least four senders of the longest bodies.
        options.unfinishedBodiesBytesPerAddressMax = max(options.unfinishedBodiesBytesPerAddressMax, configuration.bodyBytesMax)
        options.unfinishedBodiesBytesMax = max(options.unfinishedBodiesBytesMax, 4 * options.unfinishedBodiesBytesPerAddressMax)
        options.countsConnections = configuration.limits.connectionsPerAddress > 0
        options.requestTimeoutSeconds = max(1, Int(configuration.limits.requestTimeout.components.seconds))
        return options
    }

    /// - Parameter inherited: a socket that listens already. It must not be open to more machines than `listen.host`, for which
    ///   the secrets were checked.
    static func listeningSocket(_ configuration: Configuration, inherited: Int32?) throws(ServerError) -> ListeningSocket {
        let host = configuration.listen.host
        do {
            guard let inherited else { return try ListeningSocket(host: host.value, port: configuration.listen.port.value) }
            let socket = try ListeningSocket(inherited: inherited)
            guard socket.isLoopback || !configuration.listen.isLoopback else {
                throw ServerError(
                    .badConfiguration,
                    "\(host.source): listen.host \(host.value) is for this machine only, and others can reach the socket that the service "
                        + "manager passes: write listen: { host: 0.0.0.0 }, or give the socket unit a ListenStream= of this machine")
            }
            return socket
        } catch {
            throw (error as? ServerError) ?? ServerError(.failed, "\(error)")
        }
    }

    /// - Returns: the store, and the lock of a file that only one process may use.
    static func store(
        _ configuration: Configuration, time: any TimeSource, logger: Logger
    ) async throws(ServerError) -> (any HubStore, StoreLock?) {
        let note: @Sendable (StorageError) -> Void = { problem in
            logger.error("a stored delivery could not be read", metadata: ["error": "\(problem)"])
        }
        do {
            switch configuration.store.value {
            case .sqlite(let path):
                let lock = try StoreLock(store: path)
                return (try SQLiteStore(path: path, time: time, onUnreadableRow: note), lock)
            case .postgres(let address):
                let store = try await PostgresStore(
                    address: address, time: time, isAlone: configuration.backplane.value == .local, onUnreadableRow: note)
                if let warning = store.database?.clockWarning { logger.warning("\(warning)") }
                return (store, nil)
            }
        } catch {
            throw self.error(error)
        }
    }

    static func error(_ failure: StorageError) -> ServerError {
        ServerError([.inUse, .otherPartitions, .newerSchema].contains(failure.code) ? .badConfiguration : .failed, "\(failure)")
    }
}

extension Configuration {
    /// Readers that `/metrics` allows.
    var metricsAccess: MetricsAccess {
        if let token = metrics.token { return .token(token) }
        return listen.isLoopback ? .everybody : .nobody
    }

    /// Longest HTTP body that some app may need, in bytes.
    var bodyBytesMax: Int {
        var limits = PublishLimits()
        limits.eventDataBytesMax = eventDataBytesMax
        return max(Router.bodyBytesMin, limits.batchBodyBytesMax)
    }
}
