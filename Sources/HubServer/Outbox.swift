internal import HubCore
internal import HubDelivery
internal import HubPush
internal import Logging

/// Sends what was committed: leases a delivery before it is sent, writes down the outcome after, tries again when that is of use.
///
/// A delivery's lease is durable before its first byte leaves, so whatever happens in between is known to have possibly
/// happened: after a crash it is sent again under the same ids, which the devices fold into one.
actor Outbox {
    private let gateway: any PushGateway
    private let directory: any HubDelivery.Directory
    private let store: any DeliveryStore
    private let time: any TimeSource
    private let logger: Logger
    /// Due now, in order.
    private var ready: [DeliveryRecord] = []
    /// Waiting for their time.
    private var later: [DeliveryRecord] = []
    private var inFlight = 0
    private var isPumping = false
    private var isClosed = false
    /// More was committed than is kept in memory: the store has the rest.
    private var hasOverflowed = false
    private var timer: Task<Void, Never>?

    /// Deliveries kept in memory; beyond it they wait in the store.
    static let queuedMax = 100_000
    /// Deliveries handed to the gateways and not answered.
    static let inFlightMax = 1_000
    /// Deliveries leased in one transaction.
    static let leaseMax = 256
    /// A lease: how long an attempt may take before somebody else may repeat it, in milliseconds.
    static let leaseMilliseconds: Int64 = 30_000

    init(
        gateway: any PushGateway, directory: any HubDelivery.Directory, store: any DeliveryStore, time: any TimeSource, logger: Logger
    ) {
        self.gateway = gateway
        self.directory = directory
        self.store = store
        self.time = time
        self.logger = logger
    }

    /// Takes up what an earlier process left open: nothing that it leased is being sent any more.
    func resume() async throws {
        let open = try await store.openDeliveries(limit: Self.queuedMax)
        hasOverflowed = open.count == Self.queuedMax
        if !open.isEmpty { logger.info("taking up deliveries left open", metadata: ["push.open": "\(open.count)"]) }
        let now = time.wallMilliseconds
        add(
            open.map { delivery in
                var delivery = delivery
                if delivery.state == .leased { delivery.dueAt = now }
                return delivery
            })
        await pump()
    }

    /// Takes deliveries that are committed in the state `due`.
    func enqueue(_ deliveries: [DeliveryRecord]) async {
        if hasOverflowed || ready.count + later.count + deliveries.count > Self.queuedMax {
            hasOverflowed = true
        } else {
            add(deliveries)
        }
        await pump()
    }

    /// Sends nothing more; what was not sent stays open in the store. What the gateways still answer is written down.
    func close() {
        isClosed = true
        timer?.cancel()
        ready = []
        later = []
    }

    /// Deliveries in the gateways' hands.
    var sending: Int { inFlight }

    private func add(_ deliveries: [DeliveryRecord]) {
        let now = time.wallMilliseconds
        for delivery in deliveries {
            if delivery.dueAt <= now { ready.append(delivery) } else { later.append(delivery) }
        }
        arm()
    }

    private func arm() {
        timer?.cancel()
        timer = nil
        guard !isClosed, let soonest = later.map(\.dueAt).min() else { return }
        let wait = max(0, soonest - time.wallMilliseconds)
        timer = Task { [weak self] in
            do { try await Task.sleep(for: .milliseconds(wait)) } catch { return }
            await self?.wake()
        }
    }

    private func wake() async {
        // This runs in the timer's task: arming the next one must not cancel it, or the store's reads below would fail.
        timer = nil
        let now = time.wallMilliseconds
        ready += later.filter { $0.dueAt <= now }
        later.removeAll { $0.dueAt <= now }
        arm()
        await pump()
    }

    /// One caller at a time works the queue off; the others only add to it.
    private func pump() async {
        guard !isPumping else { return }
        isPumping = true
        defer { isPumping = false }
        while !isClosed, inFlight < Self.inFlightMax {
            if ready.isEmpty, later.isEmpty, inFlight == 0, hasOverflowed { await reload() }
            guard !ready.isEmpty else { return }
            var batch = Array(ready.prefix(min(Self.leaseMax, Self.inFlightMax - inFlight)))
            ready.removeFirst(batch.count)
            let now = time.wallMilliseconds
            for index in batch.indices {
                batch[index].state = .leased
                batch[index].attempts += 1
                batch[index].dueAt = now + Self.leaseMilliseconds
            }
            inFlight += batch.count
            do {
                try await store.update(batch)
                for delivery in batch { await send(delivery) }
            } catch {
                logger.error("deliveries could not be leased; trying again", metadata: ["error": "\(error)"])
                inFlight -= batch.count
                for index in batch.indices {
                    batch[index].attempts -= 1
                    batch[index].dueAt = now + 1000
                }
                later += batch
                arm()
                return
            }
        }
    }

    private func reload() async {
        do {
            let open = try await store.openDeliveries(limit: Self.queuedMax)
            hasOverflowed = open.count == Self.queuedMax
            add(open)
        } catch {
            logger.error("open deliveries could not be read", metadata: ["error": "\(error)"])
        }
    }

    /// The token is looked up now, not when the push was decided: it may have changed since.
    private func send(_ delivery: DeliveryRecord) async {
        guard let message = delivery.message else { return await finish(delivery, .failed, outcome: "no message") }
        guard message.expiresAt > time.wallMilliseconds else { return await finish(delivery, .expired, outcome: "expired") }
        let device: Device?
        do {
            device = try await directory.device(app: delivery.app, user: delivery.user, id: delivery.device)
        } catch {
            return await settle(delivery, token: nil, provider: nil, .retry(after: nil, reason: "store"))
        }
        guard let device, let token = device.token else { return await finish(delivery, .undeliverable, outcome: "no token") }
        guard device.notifications else { return await finish(delivery, .undeliverable, outcome: "permission denied") }
        let target = PushTarget(
            device: device.id, provider: device.provider, platform: device.platform, token: token, environment: device.environment)
        gateway.send(message, to: target) { outcome in
            Task { await self.settle(delivery, token: token, provider: device.provider, outcome) }
        }
    }

    private func settle(_ delivery: DeliveryRecord, token: String?, provider: PushProvider?, _ outcome: PushOutcome) async {
        switch outcome {
        case .accepted(let providerID):
            var delivery = delivery
            delivery.providerID = providerID
            await finish(delivery, .accepted, outcome: "accepted")
        case .dead(let reason, let since):
            if let token, let provider {
                do {
                    _ = try await directory.removeToken(token, provider: provider, deadSince: since)
                } catch {
                    logger.error("a dead token could not be removed", metadata: ["error": "\(error)"])
                }
            }
            await finish(delivery, .failed, outcome: reason)
        case .rejected(let reason): await finish(delivery, .failed, outcome: reason)
        case .skippedUnconfigured: await finish(delivery, .skippedUnconfigured, outcome: "skipped_unconfigured")
        case .retry(_, let reason):
            let now = time.wallMilliseconds
            let next = RetryPolicy.next(
                attempt: delivery.attempts, outcome: outcome, now: now, firstAttemptAt: delivery.message?.committedAt ?? now,
                expiresAt: delivery.message?.expiresAt ?? now, random: Double.random(in: 0..<1))
            switch next {
            case .giveUp(let why): await finish(delivery, .failed, outcome: "\(reason): \(why)")
            case .at(let due): await postpone(delivery, until: due, reason: reason)
            }
        }
    }

    private func finish(_ delivery: DeliveryRecord, _ state: DeliveryState, outcome: String) async {
        var delivery = delivery
        delivery.state = state
        delivery.outcome = outcome
        inFlight -= 1
        await write(delivery)
        logger.debug(
            "push ended", metadata: ["push.nid": "\(delivery.nid)", "push.state": "\(state.rawValue)", "push.outcome": "\(outcome)"])
        await pump()
    }

    private func postpone(_ delivery: DeliveryRecord, until due: Int64, reason: String) async {
        var delivery = delivery
        delivery.state = .retry
        delivery.dueAt = due
        delivery.outcome = reason
        inFlight -= 1
        await write(delivery)
        if !isClosed {
            later.append(delivery)
            arm()
        }
        await pump()
    }

    /// An outcome that cannot be written leaves the lease in the store: the delivery is repeated after the next start.
    private func write(_ delivery: DeliveryRecord) async {
        do {
            try await store.update([delivery])
        } catch {
            logger.error("the outcome of a push could not be stored", metadata: ["push.nid": "\(delivery.nid)", "error": "\(error)"])
        }
    }
}
