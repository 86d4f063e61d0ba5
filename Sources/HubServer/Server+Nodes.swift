internal import HubChannels
package import HubConfiguration
internal import HubCore
internal import HubScaleOut
internal import HubStorage
internal import HubWebhooks
internal import Logging

/// The way to the other nodes of the hub.
extension Server {
    /// - Returns: nil for a single node.
    static func nodes(
        _ configuration: Configuration, directory: AppDirectory, process: ProcessTag, ports: EnginePorts, store: any HubStore,
        webhooks: WebhookService?, logger: Logger
    ) throws(ServerError) -> Nodes? {
        guard let address = try redis(configuration) else { return nil }
        let exchange = NodeExchange(directory: directory, process: process, loopCount: ports.count) {
            ports.post($1, to: $0)
        } owns: {
            store.owns(Partition.of($0))
        } report: {
            webhooks?.report($0)
        }
        let database = store.database?.identity
        let backplane = RedisBackplane(address, database: database ?? "") { [weak exchange] shard, news, position in
            exchange?.take(shard, news, position)
        } answer: { [weak exchange] answers in
            exchange?.take(answers)
        } onDeath: {
            logger.error("the other nodes have declared this one dead: its clients are told to reconnect")
            for loop in 0..<ports.count { ports.post(.drain(count: .max), to: loop) }
        }
        exchange.connect(backplane)
        return Nodes(exchange: exchange, backplane: backplane, address: address, database: database, logger: logger)
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

    /// Finds mistakes of the backplane's setting without asking it: `tandem check`.
    package static func checkBackplane(_ configuration: Configuration) throws(ServerError) { _ = try redis(configuration) }

    /// This node's part in a hub of several.
    struct Nodes: Sendable {
        let exchange: NodeExchange
        let backplane: RedisBackplane
        let address: RedisAddress
        /// Identity of the database that the nodes share, if it is known.
        let database: String?
        let logger: Logger

        /// Asks every server, and connects.
        /// - Throws: `badConfiguration` for what only another setting can help, `failed` for a Redis that does not answer.
        func start() async throws(ServerError) {
            for shard in 0..<address.shardCount {
                do throws(RedisFailure) {
                    let answer = try await RedisCheck.ask(address, shard: shard, database: database) { SystemTime().wallMilliseconds }
                    for warning in answer.warnings { logger.warning("backplane (\(address.name(of: shard))): \(warning)") }
                } catch {
                    throw Self.error(error, address.name(of: shard))
                }
            }
            do throws(RedisFailure) { try await backplane.start() } catch { throw Self.error(error, address.hosts[0].description) }
        }

        private static func error(_ failure: RedisFailure, _ name: String) -> ServerError {
            ServerError(failure.isMistake ? .badConfiguration : .failed, "backplane (\(name)): \(failure.sentence)")
        }

        func run() async { await backplane.run() }

        func close() async { await backplane.close() }
    }
}
