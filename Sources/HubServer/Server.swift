internal import HubAPI
internal import HubChannels
package import HubConfiguration
internal import HubCore
internal import HubCrypto
package import HubDefinitions
internal import HubDelivery
internal import HubOutbox
internal import HubPush
internal import HubStorage
internal import HubTransport
internal import HubWebhooks
package import Logging
internal import PusherProtocol
internal import Synchronization

/// The composition root: makes all parts from a configuration, connects them, and runs and stops them.
package final class Server: Sendable {
    /// The port in use.
    package let port: Int
    /// Opens the console once; nil if a password does, or nothing.
    package let consoleTicket: String?
    private let acceptor: Acceptor
    let loops: LoopGroup
    private let ports: EnginePorts
    let delivery: DeliveryService
    private let live: LiveStream
    private let outbox: Outbox
    let gateway: PushRouter
    /// Counts the push gateways' alarms.
    let pushReports: PushReports
    private let store: any HubStore
    /// Held until the store is closed, so a successor finds all commits; nil for PostgreSQL.
    private let storeLock: StoreLock?
    /// Nil if no app has webhooks.
    private let webhooks: WebhookService?
    private let isDraining: Flag
    private let isClosing: Flag
    let logger: Logger
    private let deliveryTask: Task<Void, Never>
    private let escalator: Escalator
    private let escalatorTask: Task<Void, Never>
    private let replayer: Replayer
    private let replayerTask: Task<Void, Never>
    private let retentionTask: Task<Void, Never>
    private let markerTask: Task<Void, Never>
    private let probeTask: Task<Void, Never>
    private let scheduled: ScheduledPublishes
    private let scheduledTask: Task<Void, Never>
    private let listenerTask: Task<Void, Never>
    let apps: AppService
    private let appsTask: Task<Void, Never>
    /// Nil for a single node.
    private let nodes: Nodes?
    private let nodesTask: Task<Void, Never>
    private let boardTask: Task<Void, Never>

    /// Binds, starts all parts, and accepts connections. Events that a crash left open are recovered before the first connection.
    /// - Parameter inherited: a listening socket to take over, instead of the configured address.
    /// - Throws: `badConfiguration` for unusable files or a store in use, `failed` for all other errors.
    package init(
        _ configuration: Configuration, definitions: DefinitionSet, inherited: Int32? = nil, logger: Logger
    ) async throws(ServerError) {
        let time = SystemTime()
        let directory = Self.apps(configuration)
        func random() -> UInt64 { SecureRandom.bytes(8).reduce(0) { $0 << 8 | UInt64($1) } }
        let tag = (random(), random())
        let process = ProcessTag(random: tag.0, tag.1)
        let certificate = try Self.certificate(configuration)
        for warning in configuration.warnings + SecretFiles.warnings(configuration) { logger.warning("\(warning)") }
        for warning in certificate?.warnings(now: time.wallSeconds) ?? [] { logger.warning("\(warning)") }
        let pushReports = PushReports(time: time)
        pushReports.onAlarm { Self.log($0, lane: $1, detail: $2, to: logger) }
        let gateway = try Self.gateway(configuration, time: time, logger: logger, reports: pushReports)
        // Bound before the store is opened: if another hub owns the port, the due pushes are that hub's, too.
        let socket = try Self.listeningSocket(configuration, inherited: inherited)
        try await Self.askBackplane(configuration, logger: logger)
        let (store, storeLock) = try await Self.store(configuration, time: time, logger: logger)
        let tokenAge = TokenAge(staleAfter: configuration.push.staleAfter)
        let live = LiveStream(time: time)
        let outbox = Outbox(
            gateway: gateway, directory: store, store: store, definitions: definitions, tokenAge: tokenAge, time: time, live: live,
            logger: logger)
        pushReports.onDeadToken { token in
            Task { await outbox.remove(token.token, app: token.app, of: token.provider, deadSince: token.since) }
        }
        let (isDraining, isClosing) = (Flag(), Flag())
        let ages: RetentionClock
        do {
            let newest = try await store.newestTime()
            if let doubt = RetentionClock.doubt(newest: newest, now: time.wallMilliseconds) { logger.warning("\(doubt)") }
            ages = RetentionClock(time: time, newest: newest)
            var options = Self.options(configuration, certificate: certificate)
            options.forwarding = Self.forwarding(configuration, logger: logger)
            let loops = try LoopGroup(count: configuration.loopCount, options: options)
            let ports = EnginePorts(loops.handles)
            let apps = AppService(
                configuration.apps, directory: directory, store: store, eventDataBytesMax: configuration.eventDataBytesMax, time: time,
                logger: logger
            ) { for loop in 0..<ports.count { ports.post(.appsChanged, to: loop) } }
            try await apps.refresh()
            let webhooks = try Self.webhooks(configuration, store: store, time: time, logger: logger)
            let nodes = try Self.nodes(
                configuration, directory: directory, tag: tag, ports: ports, store: store, webhooks: webhooks, time: time, logger: logger)
            let pushes = NodePushQueue(outbox: outbox, store: store, nodes: nodes?.delivery, logger: logger)
            let reader = AudienceReader(directory: store)
            let escalator = Escalator(
                reader: reader, store: store, outbox: outbox, pushes: pushes, tokenAge: tokenAge, time: time, logger: logger)
            let replayer = Replayer(store: store, time: time, logger: logger)
            let recovery = Recovery(
                reader: reader, store: store, definitions: definitions, loopCount: ports.count, tokenAge: tokenAge, time: time)
            var several: DeliveryService.Several?
            if let nodes {
                let firstNumber = UInt64(clamping: store.processNumber) << Self.eventNumberBits
                several = DeliveryService.Several(nodes: nodes.delivery, pushes: pushes, firstNumber: firstNumber) { partitions in
                    try await recovery.events { partitions.contains(app: $0, channel: $1) }
                }
            }
            let delivery = DeliveryService(
                definitions: definitions, directory: store, store: store, apps: directory, outbox: outbox, pushes: pushes,
                escalator: escalator, replayer: replayer, ports: ports, process: process, tokenAge: tokenAge, time: time, several: several,
                live: live, logger: logger)
            if let nodes { nodes.delivery.connect(nodes.exchange, delivery) }
            let scheduled = ScheduledPublishes(
                store: store, apps: directory, delivery: delivery, nodes: nodes?.delivery, time: time, logger: logger)
            let participants = ParticipantAPI(
                directory: store, store: store, apps: directory, delivery: delivery, time: time,
                definitions: { delivery.currentDefinitions },
                defaultEnvironment: configuration.push.apnsSandboxByDefault ? .sandbox : .production,
                limits: Self.joinLimits(configuration))
            // A clock that was set forward makes no answer too old to be repeated.
            let answers = AnswerBook(time: time) { app, key, since in
                try await store.answer(app: app, key: key, since: min(since, ages.cutoff(life: AnswerRecord.lifeMilliseconds)))
            }
            let relay = nodes?.relay(of: live, time: time)
            let backend = BackendAPI(
                directory: store, store: store, delivery: delivery, pushes: pushes, answers: answers, time: time,
                definitions: { delivery.currentDefinitions },
                defaultEnvironment: configuration.push.apnsSandboxByDefault ? .sandbox : .production, tokenAge: tokenAge,
                occupied: OccupiedChannels(ChannelSurvey(loopCount: ports.count, backplane: nodes?.backplane) { ports.post($1, to: $0) }),
                live: live, node: { nodes?.delivery.me.hexDigits }, missing: { relay?.missing(of: $0) ?? [] })
            let cluster = ClusterService(
                address: "\(configuration.listen.host.value):\(socket.port)", directory: directory, delivery: delivery, store: store,
                time: time)
            nodes?.connect(cluster)
            let operators = OperatorAPI(
                credential: configuration.operatorCredential.map { ($0.key, $0.secret) }, apps: apps, cluster: cluster, time: time)
            let access = await Self.consoleAccess(configuration)
            let console = access.map { ConsoleAPI($0, time: time) }
            let accepted = Acceptor.Counts()
            let collector = MetricsCollector(
                ports: ports, accepted: accepted, delivery: delivery, outbox: outbox, gateway: gateway, pushReports: pushReports,
                store: store, webhooks: webhooks, backplane: nodes?.backplane, exchange: nodes?.exchange)
            let numbers = nodes?.numbers(of: collector, time: time)
            let metrics = MetricsResource(
                access: configuration.metricsAccess, read: collector.read, others: { numbers?.others() ?? [:] })
            let readiness = Readiness(
                refusal: {
                    isDraining.isSet ? Readiness.shuttingDown : nodes?.refusal ?? StoreProbe.refusal(store.health)
                }, isClosing: { isClosing.isSet })
            let facts = Self.facts(webhooks, nodes)
            try loops.start { loop in
                let engineOfLoop = LoopBridge(
                    loop: loop, ports: ports, report: { delivery.report($0, loop: loop.index) }, facts: facts,
                    relief: delivery.relief)
                let engine = ChannelEngine(
                    loop: loop.index, loopCount: ports.count, directory: directory, process: process, sink: engineOfLoop, time: time,
                    traits: delivery.traits, nodes: nodes?.exchange, reporting: { delivery.report($0, loop: loop.index) },
                    post: { loop, message in ports.post(message, to: loop) })
                let router = Router(
                    engine: engine, delivery: delivery, schedule: scheduled, answers: answers,
                    survey: ChannelSurvey(loopCount: ports.count, backplane: nodes?.backplane) { ports.post($1, to: $0) },
                    backend: backend, participants: participants, operators: operators, metrics: metrics, time: time,
                    bodyBytesMax: configuration.bodyBytesMax,
                    corsOrigins: configuration.corsOrigins, readiness: readiness, console: console, live: live)
                engineOfLoop.start(engine: engine, router: router)
                return engineOfLoop
            }
            // With several nodes the partitions come one by one, each with its open events and pushes.
            let recovered = nodes == nil ? try await recovery.events() : []
            if !recovered.isEmpty { logger.info("waiting for receipts of events left open", metadata: ["events": "\(recovered.count)"]) }
            delivery.recover(recovered)
            escalatorTask = Task { await escalator.run() }
            replayerTask = Task { await replayer.run { delivery.replay($0, frames: $1) } }
            let isReturnDue = AttendanceMark.isRecent(try await store.lastAttendance(), now: time.wallMilliseconds)
            deliveryTask = Task { await delivery.run(wasAway: nodes == nil && (isReturnDue || !recovered.isEmpty)) }
            scheduledTask = Task { await scheduled.run() }
            listenerTask = Task {
                await store.listen {
                    scheduled.wake()
                    apps.wake()
                }
            }
            apps.wake()
            appsTask = Task { await apps.run() }
            if nodes == nil { try await outbox.resume() }
            try await webhooks?.resume()
            try await nodes?.start()
            nodesTask = Task { await nodes?.run() }
            boardTask = Task { if let nodes, let relay, let numbers { await nodes.lookAtBoard(relay, numbers, console, time: time) } }
            acceptor = try Acceptor(
                socket, loops: loops.handles, quietSeconds: options.requestTimeoutSeconds, proxy: Self.proxyDoor(configuration),
                counts: accepted)
            self.loops = loops
            self.ports = ports
            self.delivery = delivery
            self.escalator = escalator
            self.replayer = replayer
            self.scheduled = scheduled
            self.apps = apps
            self.webhooks = webhooks
            self.nodes = nodes
            consoleTicket = access?.ticket
            self.live = live
        } catch {
            // Otherwise its threads would go on while the process ends, and others would wait for what it owns.
            try? await store.close()
            throw (error as? ServerError) ?? ServerError(.failed, "\(error)")
        }
        let retention = Retention(store: store, directory: store, clock: ages, logger: logger)
        retentionTask = Task { await retention.run() }
        let marker = AttendanceMarker(store: store, time: time, isAttended: delivery.isAttended, logger: logger)
        markerTask = Task { await marker.run() }
        let probe = StoreProbe(store: store, logger: logger)
        probeTask = Task { await probe.run() }
        port = acceptor.port
        self.outbox = outbox
        self.gateway = gateway
        self.pushReports = pushReports
        self.store = store
        self.storeLock = storeLock
        self.isDraining = isDraining
        self.isClosing = isClosing
        self.logger = logger
    }

    /// Bits of an event's number below those that tell its node.
    private static let eventNumberBits: UInt64 = 40

    /// Clients that are told to go per second: a thousand in three seconds. More take longer, up to `drainSecondsMax`.
    static let drainedPerSecond = 333
    static let drainSecondsMax = 7.0
    private static let drainStepMilliseconds = 50
    /// Seconds after which unfinished requests are cut off.
    private static let stopSecondsMax = 9.0

    /// Stops in order: the listener first, then the connections, a few at a time so that clients do not come back all at once. Accepted
    /// requests are committed, then the parts stop.
    package func stop() async {
        let began = ContinuousClock.now
        isDraining.set()
        live.close()
        acceptor.stop()
        await handOver()
        await drain()
        // Publishes that fall due from now on wait for the next start.
        scheduled.close()
        await scheduledTask.value
        // Accepted publishes are committed and answered before the loops stop, as is every other request.
        isClosing.set()
        delivery.close()
        replayer.close()
        await replayerTask.value
        await deliveryTask.value
        escalator.close()
        await escalatorTask.value
        retentionTask.cancel()
        markerTask.cancel()
        probeTask.cancel()
        listenerTask.cancel()
        apps.close()
        await appsTask.value
        await outbox.close()
        // Both stop at the same time, because each may take a second.
        async let webhooksStopped: Void? = webhooks?.stop()
        gateway.shutdown(grace: .seconds(1))
        await answerRequests(until: began + .seconds(Self.stopSecondsMax))
        _ = await webhooksStopped
        boardTask.cancel()
        await boardTask.value
        await nodes?.close()
        await nodesTask.value
        loops.stop()
        do { try await store.close() } catch { logger.error("the store did not close", metadata: ["error": "\(error)"]) }
    }

    /// Gives this node's partitions to the others while its clients are still here. Decisions are stored first. Pushes on their way
    /// are answered, so that their next owner does not send them again. A node that is alone keeps everything.
    private func handOver() async {
        guard let nodes, (store.postgres?.others ?? 0) > 0 else { return }
        let began = ContinuousClock.now
        await nodes.delivery.leave()
        await escalator.settled()
        await waitUntil(within: .seconds(1)) { [outbox] in await outbox.sending == 0 }
        await webhooks?.leave()
        do {
            try await store.handOver()
            await nodes.delivery.tellNextOwners()
            logger.info("the other nodes have the partitions", metadata: ["milliseconds": "\((ContinuousClock.now - began).milliseconds)"])
        } catch {
            logger.error("the partitions could not be handed over", metadata: ["error": "\(error)"])
        }
    }

    private func drain() async {
        let loads = loops.handles.map(\.load)
        let total = loads.reduce(0, +)
        guard total > 0 else { return }
        let seconds = min(Double(total) / Double(Self.drainedPerSecond), Self.drainSecondsMax)
        let steps = max(1, Int(seconds * 1000) / Self.drainStepMilliseconds)
        let began = ContinuousClock.now
        for step in 0..<steps {
            for (loop, load) in loads.enumerated() {
                let share = load * (step + 1) / steps - load * step / steps
                if share > 0 { ports.post(.drain(count: share), to: loop) }
            }
            // Steps have random lengths, so that the clients do not return in beats.
            await pause(milliseconds: Int.random(in: Self.drainStepMilliseconds / 2...Self.drainStepMilliseconds * 3 / 2))
        }
        logger.info(
            "clients were told to reconnect",
            metadata: ["clients": "\(total)", "milliseconds": "\((ContinuousClock.now - began).milliseconds)", "steps": "\(steps)"])
        // Connections that arrived meanwhile are closed, too, with time for the close handshakes.
        for loop in loads.indices { ports.post(.drain(count: .max), to: loop) }
        for _ in 0..<20 where loops.handles.contains(where: { $0.load > 0 }) { await pause(milliseconds: 50) }
    }

    /// Waits until every request that has arrived is answered; later ones are refused at once. Waits at least one step, in which peers get
    /// the last writes.
    /// - Parameter end: time at which unfinished requests are cut off.
    private func answerRequests(until end: ContinuousClock.Instant) async {
        let last = await figuresOfLoops().map(\.nextRequest)
        var isAnswered = false
        repeat {
            await pause(milliseconds: Self.drainStepMilliseconds)
            if isAnswered { return }
            isAnswered = await zip(figuresOfLoops(), last).allSatisfy { $0.answeredUpTo >= $1 }
        } while ContinuousClock.now < end
    }

    /// Counters of each loop, in the loops' order.
    func figuresOfLoops() async -> [LoopCounters] {
        let (readings, continuation) = AsyncStream.makeStream(of: (Int, LoopCounters).self)
        for loop in loops.handles.indices { ports.post(.measure { continuation.yield((loop, $0.loop)) }, to: loop) }
        var figures: [Int: LoopCounters] = [:]
        for await (loop, reading) in readings {
            figures[loop] = reading
            if figures.count == loops.handles.count { break }
        }
        return figures.sorted { $0.key < $1.key }.map(\.value)
    }

    private func pause(milliseconds: Int) async {
        do { try await Task.sleep(for: .milliseconds(milliseconds)) } catch { return }
    }
}

/// Looks every 10 ms until the condition holds, or the time is over.
func waitUntil(within: Duration, _ holds: @Sendable () async -> Bool) async {
    let end = ContinuousClock.now + within
    while await !holds(), ContinuousClock.now < end {
        do { try await Task.sleep(for: .milliseconds(10)) } catch { return }
    }
}

/// An atomic `Bool`.
final class Flag: Sendable {
    private let value = Atomic<Bool>(false)
    var isSet: Bool { value.load(ordering: .acquiring) }
    func set(_ isSet: Bool = true) { value.store(isSet, ordering: .releasing) }
}
