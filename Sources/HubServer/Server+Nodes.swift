internal import HubChannels
internal import HubConfiguration
internal import HubCore
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
        guard case .redis(let url) = configuration.backplane.value else { return nil }
        guard case .postgres = configuration.store.value else {
            throw ServerError(
                .badConfiguration, "backplane: redis:// needs store: postgres://, which all nodes share; a file belongs to one of them")
        }
        let address: RedisAddress
        do throws(RedisAddress.Mistake) { address = try RedisAddress(url) } catch {
            throw ServerError(.badConfiguration, "backplane: \(error.sentence)")
        }
        let delivery = NodeDelivery(tag: tag, ports: ports, apps: directory, store: store, time: time) {
            PartitionSet(store.ownedPartitions)
        }
        let exchange = NodeExchange(
            directory: directory, process: ProcessTag(random: tag.0, tag.1), loopCount: ports.count, delivery: delivery
        ) {
            ports.post($1, to: $0)
        } owns: {
            store.owns(Partition.of($0))
        } report: {
            webhooks?.report($0)
        }
        let backplane = RedisBackplane(address) { [weak exchange] shard, news, position in
            exchange?.take(shard, news, position)
        } answer: { [weak exchange] answers in
            exchange?.take(answers)
        } onDeath: {
            logger.error("the other nodes have declared this one dead: its clients are told to reconnect")
            for loop in 0..<ports.count { ports.post(.drain(count: .max), to: loop) }
        }
        exchange.connect(backplane)
        return Nodes(exchange: exchange, delivery: delivery, backplane: backplane)
    }

    /// This node's part in a hub of several.
    struct Nodes: Sendable {
        let exchange: NodeExchange
        let delivery: NodeDelivery
        let backplane: RedisBackplane

        /// - Throws: why Redis cannot be the backplane, or does not answer.
        func start() async throws(ServerError) {
            do throws(RedisFailure) { try await backplane.start() } catch { throw ServerError(.failed, "backplane: \(error.sentence)") }
        }

        func run() async {
            async let delivers: Void = delivery.run()
            await backplane.run()
            await delivers
        }

        func close() async {
            delivery.close()
            await backplane.close()
        }
    }
}
