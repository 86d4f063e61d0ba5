internal import Glibc
internal import HubAPI
internal import HubChannels
package import HubConfiguration
internal import HubCore
internal import HubDelivery
internal import HubScaleOut
internal import HubStorage
internal import HubWebhooks
internal import Logging

/// The way to the other nodes of the hub.
extension Server {
    /// - Returns: nil for a single node.
    static func nodes(
        _ configuration: Configuration, directory: AppDirectory, tag: (UInt64, UInt64), ports: EnginePorts, store: any HubStore,
        webhooks: WebhookService?, time: any TimeSource, logger: Logger
    ) throws(ServerError) -> Nodes? {
        guard let address = try redis(configuration) else { return nil }
        let delivery = NodeDelivery(tag: tag, ports: ports, apps: directory, store: store, time: time) {
            PartitionSet(store.ownedPartitions)
        }
        let cluster = Guarded<ClusterService?>(nil)
        let exchange = NodeExchange(
            directory: directory, process: ProcessTag(random: tag.0, tag.1), loopCount: ports.count, versions: messageVersions,
            delivery: delivery
        ) {
            ports.post($1, to: $0)
        } report: {
            webhooks?.report($0)
        }
        let sendAway: @Sendable (String?) -> Void = { reason in
            if let reason { logger.error("\(reason): its clients are told to reconnect") }
            for loop in 0..<ports.count { ports.post(.drain(count: .max), to: loop) }
        }
        let backplane = RedisBackplane(address, database: store.database?.identity ?? "", versions: messageVersions) {
            cluster.withLock { $0 }.map { JSONValue.object($0.facts).serialized() } ?? []
        } take: { [weak exchange] shard, news, position in
            exchange?.take(shard, news, position)
        } answer: { [weak exchange] answers in
            exchange?.take(answers)
        } onDeath: {
            sendAway("the other nodes have declared this one dead")
        }
        exchange.connect(backplane)
        store.noteHearing { backplane.hears }
        let name = (0..<address.shardCount).map(address.name(of:)).joined(separator: ", ")
        return Nodes(
            exchange: exchange, delivery: delivery, backplane: backplane, cluster: cluster, name: name,
            isCutOff: { store.isCutOff }, sendAway: sendAway)
    }

    /// Versions of messages between nodes that this process reads: the build's. Tests of upgrades have a debug build read others, such as
    /// `1-2`, as the next build will.
    private static var messageVersions: MessageVersions {
        #if DEBUG
        if let text = unsafe getenv("TANDEM_TEST_MESSAGES"), let versions = unsafe MessageVersions(String(cString: text)) {
            return versions
        }
        #endif
        return .known
    }

    /// Where the backplane is; nil for a single node.
    /// - Throws: `badConfiguration` for an address that is none, and for a store that nodes cannot share.
    static func redis(_ configuration: Configuration) throws(ServerError) -> RedisAddress? {
        guard case .redis(let url) = configuration.backplane.value else { return nil }
        guard case .postgres = configuration.store.value else {
            throw ServerError(
                .badConfiguration, "backplane: redis:// needs store: postgres://, which all nodes share; a file belongs to one of them")
        }
        do throws(RedisAddress.Mistake) { return try RedisAddress(url) } catch {
            throw ServerError(.badConfiguration, "backplane: \(error.sentence)")
        }
    }

    /// Asks the servers of the backplane, and logs warnings. Comes before the store is opened: a node that cannot join takes no partitions.
    /// - Throws: `badConfiguration` for what only another setting can help, `failed` for a server that does not answer.
    static func askBackplane(_ configuration: Configuration, logger: Logger) async throws(ServerError) {
        guard let address = try redis(configuration), case .postgres(let store) = configuration.store.value else { return }
        let database: String?
        do throws(StorageError) {
            database = try await PostgresCheck.ask(store) { SystemTime().wallMilliseconds }.database.identity
        } catch {
            throw self.error(error)
        }
        for shard in 0..<address.shardCount {
            let name = address.name(of: shard)
            do throws(RedisFailure) {
                let answer = try await RedisCheck.ask(address, shard: shard, database: database, versions: messageVersions) {
                    SystemTime().wallMilliseconds
                }
                for warning in answer.warnings { logger.warning("backplane (\(name)): \(warning)") }
            } catch {
                throw self.error(error, name)
            }
        }
    }

    private static func error(_ failure: RedisFailure, _ name: String) -> ServerError {
        ServerError(failure.isMistake ? .badConfiguration : .failed, "backplane (\(name)): \(failure.sentence)")
    }

    /// Finds mistakes of the backplane's setting without asking it: `tandem check`.
    package static func checkBackplane(_ configuration: Configuration) throws(ServerError) { _ = try redis(configuration) }

    /// This node's part in a hub of several.
    struct Nodes: Sendable {
        let exchange: NodeExchange
        let delivery: NodeDelivery
        let backplane: RedisBackplane
        let cluster: Guarded<ClusterService?>
        /// The servers as messages name them.
        let name: String
        /// Whether the node has given its partitions to others that hear through the backplane.
        let isCutOff: @Sendable () -> Bool
        /// Tells all clients to reconnect, and the log the reason.
        let sendAway: @Sendable (String?) -> Void

        /// Connects. Every server was asked before.
        func start() async throws(ServerError) {
            do throws(RedisFailure) { try await backplane.start() } catch { throw Server.error(error, name) }
        }

        /// Why new clients should go to another node; nil: they need not.
        var refusal: String? {
            backplane.refusal
                ?? (isCutOff() ? "this node hears nothing through Redis, while another node does: see tandem cluster" : nil)
        }

        /// Looks at what other nodes leave beside the stream, until its task is cancelled.
        func lookAtBoard(_ relay: LiveRelay, _ numbers: NumbersRelay, _ console: ConsoleAPI?, time: any TimeSource) async {
            await BoardTask(
                relay: relay, numbers: numbers, console: console, board: { backplane.board }, hasBoard: { backplane.hasBoard }, time: time
            ).run()
        }

        /// Numbers of all nodes.
        func numbers(of collector: MetricsCollector, time: any TimeSource) -> NumbersRelay {
            NumbersRelay(
                read: collector.read, me: { delivery.me.hexDigits }, living: { Set(backplane.living.map(\.hexDigits)) }, time: time)
        }

        /// Live tails over all nodes.
        func relay(of stream: LiveStream, time: any TimeSource) -> LiveRelay {
            LiveRelay(
                stream, board: { backplane.board }, me: { delivery.me.hexDigits }, living: { Set(backplane.living.map(\.hexDigits)) },
                time: time)
        }

        /// Names the service that tells of this node. Call once, before the start.
        func connect(_ service: ClusterService) {
            service.connect(backplane)
            cluster.withLock { $0 = service }
        }

        func run() async {
            async let delivers: Void = delivery.run()
            // Ends with this call.
            async let _ = leaveWhileCutOff()
            await backplane.run()
            await delivers
        }

        /// Clients of a node that alone is cut off from Redis go to the others, and so do those that come meanwhile.
        private func leaveWhileCutOff() async {
            var wasCutOff = false
            while !Task.isCancelled {
                do { try await Tick.wait(.milliseconds(500)) } catch { return }
                let isCutOff = isCutOff()
                if isCutOff { sendAway(wasCutOff ? nil : "this node hears nothing through Redis (\(name)), while another node does") }
                wasCutOff = isCutOff
            }
        }

        func close() async {
            delivery.close()
            await backplane.close()
        }
    }
}
