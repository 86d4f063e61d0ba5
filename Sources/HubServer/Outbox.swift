internal import HubAPI
internal import HubCore
internal import HubDelivery
internal import HubPush
internal import Logging

/// Sends what was committed: leases a delivery before it is sent, writes down the outcome after, tries again when that is of use.
///
/// A delivery's lease is durable before its first byte leaves, so whatever happens in between is known to have possibly
/// happened: after a crash it is sent again under the same ids, which the devices fold into one.
///
/// Before its first attempt a delivery is ruled on: quiet hours, alert limits and the silent budget make it wait, durably, or end
/// it. That is this actor's own time; no publish waits for it.
actor Outbox: PushQueue {
    private let gateway: any PushGateway
    private let directory: any HubDelivery.Directory
    private let targets: TargetReader
    private let store: any DeliveryStore
    private let time: any TimeSource
    private let logger: Logger
    private var queue = DeliveryQueue()
    private var rules: PushRules
    private var inFlight = 0
    /// Of these, what the gateways have not answered.
    private var handed = 0
    private let answers = Inbox<Answer>()
    private var isSettling = false
    private var isPumping = false
    private var isClosed = false
    /// More was committed than is kept in memory: the store has the rest.
    private var hasOverflowed = false
    private var timer: (dueAt: Int64, task: Task<Void, Never>)?

    /// Deliveries kept in memory; beyond it they wait in the store.
    static let queuedMax = 100_000
    /// Deliveries handed to the gateways and not answered.
    static let inFlightMax = 2_000
    /// Deliveries leased in one transaction.
    static let leaseMax = 512
    /// With more than this many unanswered, outcomes are gathered for `gathering` and written down together: a transaction waits for
    /// the disk, however few rows it has. What a crash takes of them is sent again under the same ids.
    static let gatheringMin = 64
    static let gathering = Duration.milliseconds(10)
    /// A lease: how long an attempt may take before somebody else may repeat it, in milliseconds.
    static let leaseMilliseconds: Int64 = 30_000
    /// How often it is written down that a gateway accepted a token: often enough to tell living tokens from dead ones, and not a
    /// write for every push. In milliseconds.
    static let acceptanceNotedEvery: Int64 = 24 * 3600 * 1000

    init(
        gateway: any PushGateway, directory: any HubDelivery.Directory, store: any DeliveryStore, definitions: DefinitionSet,
        time: any TimeSource, logger: Logger
    ) {
        self.gateway = gateway
        self.directory = directory
        targets = TargetReader(directory: directory)
        self.store = store
        rules = PushRules(definitions: definitions)
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
        pump()
    }

    /// Rules by other definitions from now on.
    func change(to definitions: DefinitionSet) {
        rules.definitions = definitions
    }

    /// Takes deliveries that are committed in the state `due`.
    func enqueue(_ deliveries: [DeliveryRecord]) {
        if hasOverflowed || queue.count + deliveries.count > Self.queuedMax {
            hasOverflowed = true
        } else {
            for delivery in deliveries { queue.insert(delivery) }
        }
        pump()
    }

    /// Forgets deliveries that have been cancelled in the store.
    func drop(_ deliveries: [DeliveryRecord]) {
        for delivery in deliveries { _ = queue.remove(nid: delivery.nid, device: delivery.device) }
    }

    /// Sends nothing more; what was not sent stays open in the store. What the gateways still answer is written down.
    func close() {
        isClosed = true
        timer?.task.cancel()
        queue.removeAll()
    }

    /// Deliveries in the gateways' hands.
    var sending: Int { inFlight }

    /// Takes deliveries from the store.
    private func add(_ deliveries: [DeliveryRecord]) {
        let now = time.wallMilliseconds
        for delivery in deliveries {
            guard queue.count < Self.queuedMax else {
                hasOverflowed = true
                return
            }
            rules.restore(delivery, now: now)
            queue.insert(delivery)
        }
    }

    private func arm() {
        // Who waits for a free place is called when an answer frees one.
        let soonest = isClosed || inFlight >= Self.inFlightMax ? nil : queue.nextDue()
        if timer?.dueAt == soonest { return }
        timer?.task.cancel()
        timer = nil
        guard let soonest else { return }
        let wait = max(0, soonest - time.wallMilliseconds)
        let task = Task { [weak self] in
            do { try await Task.sleep(for: .milliseconds(wait)) } catch { return }
            await self?.wake()
        }
        timer = (soonest, task)
    }

    private func wake() {
        timer = nil
        pump()
    }

    /// Has the queue worked off by a task of its own, one at a time, so that nobody who adds to the queue waits for it.
    private func pump() {
        guard !isPumping, !isClosed else { return }
        isPumping = true
        Task {
            await work()
            isPumping = false
            arm()
        }
    }

    private func work() async {
        var hasReloaded = false
        while !isClosed, inFlight < Self.inFlightMax {
            let due = await takeDue(limit: min(Self.leaseMax, Self.inFlightMax - inFlight))
            if due.isEmpty {
                guard hasOverflowed, inFlight == 0, !hasReloaded else { return }
                hasReloaded = true
                await reload()
                continue
            }
            hasReloaded = false
            let outcome = rules.rule(due, now: time.wallMilliseconds)
            // In the queue before anything is awaited, so that whatever is cancelled meanwhile is found there.
            for delivery in outcome.waiting { queue.insert(delivery) }
            let ended = outcome.ended + displaced(outcome.displaced)
            let isLeased = await lease(outcome.sending)
            let isWritten = await write(outcome.waiting.filter { queue.contains($0) } + ended)
            for delivery in ended { log(delivery) }
            if !isLeased || !isWritten { return }
        }
    }

    /// What is due, with all that is needed to rule on it.
    private func takeDue(limit: Int) async -> [DeliveryRecord] {
        let due = queue.takeDue(now: time.wallMilliseconds, limit: limit)
        let unknown = Set(due.filter { rules.needsEvent(of: $0) }.map(\.event))
        if unknown.isEmpty, !due.contains(where: isUnknown) { return due }
        // Back while events and devices are read, so that whatever is cancelled meanwhile is found.
        for delivery in due { queue.insert(delivery) }
        for event in unknown {
            do {
                rules.learn(event: event, channel: try await store.event(id: event)?.channel, now: time.wallMilliseconds)
            } catch {
                logger.error("an event could not be read; its pushes go by the standard limits", metadata: ["event": "\(event)", "error": "\(error)"])
                rules.learn(event: event, channel: nil, now: time.wallMilliseconds)
            }
        }
        for delivery in due where rules.needsZone(of: delivery, now: time.wallMilliseconds) { await learnZone(of: delivery) }
        // What came in meanwhile may be unknown again: it is for the next round.
        let again = queue.takeDue(now: time.wallMilliseconds, limit: limit)
        for delivery in again where isUnknown(delivery) { queue.insert(delivery) }
        return again.filter { !isUnknown($0) }
    }

    private func isUnknown(_ delivery: DeliveryRecord) -> Bool {
        rules.needsEvent(of: delivery) || rules.needsZone(of: delivery, now: time.wallMilliseconds)
    }

    private func learnZone(of delivery: DeliveryRecord) async {
        var timezone: String?
        do {
            timezone = try await directory.device(app: delivery.app, user: delivery.user, id: delivery.device)?.timezone
        } catch {
            logger.error(
                "a device could not be read; its quiet hours go by the definition's time zone",
                metadata: ["push.nid": "\(delivery.nid)", "error": "\(error)"])
        }
        if !rules.learn(device: delivery, timezone: timezone, now: time.wallMilliseconds), let timezone {
            logger.warning(
                "a device names a time zone that this machine does not know; its quiet hours go by the definition's",
                metadata: ["push.nid": "\(delivery.nid)", "timezone": "\(timezone.quotable(64))"])
        }
    }

    /// Takes from the queue what is not to be sent any more.
    private func displaced(_ names: [PushRules.Displaced]) -> [DeliveryRecord] {
        var ended: [DeliveryRecord] = []
        for name in names {
            for var delivery in queue.remove(nid: name.nid, device: name.device) {
                guard rules.covers(name, delivery) else {
                    queue.insert(delivery)
                    continue
                }
                delivery.state = .cancelled
                delivery.outcome = PushBudget.Reason.displaced.rawValue
                ended.append(delivery)
            }
        }
        return ended
    }

    /// - Returns: false when the store cannot be written; they are tried again in a second.
    private func lease(_ deliveries: [DeliveryRecord]) async -> Bool {
        if deliveries.isEmpty { return true }
        let now = time.wallMilliseconds
        let batch = deliveries.map { delivery in
            var delivery = delivery
            delivery.state = .leased
            delivery.attempts += 1
            delivery.dueAt = now + Self.leaseMilliseconds
            return delivery
        }
        inFlight += batch.count
        do {
            let leased = try await store.lease(batch)
            inFlight -= batch.count - leased.count
            await send(leased)
            return true
        } catch {
            logger.error("deliveries could not be leased; trying again", metadata: ["error": "\(error)"])
            inFlight -= batch.count
            if isClosed { return false }
            for var delivery in deliveries {
                delivery.dueAt = now + 1000
                queue.insert(delivery)
            }
            return false
        }
    }

    /// Takes from the store what did not fit: the soonest due, in the place of what is here.
    private func reload() async {
        queue.removeAll()
        // What is committed from now on may come after what is read.
        hasOverflowed = false
        do {
            let open = try await store.openDeliveries(limit: Self.queuedMax)
            if isClosed { return }
            if open.count == Self.queuedMax { hasOverflowed = true }
            add(open)
        } catch {
            hasOverflowed = true
            logger.error("open deliveries could not be read", metadata: ["error": "\(error)"])
        }
    }

    /// Tokens are looked up now, not when the pushes were decided: they may have changed since.
    private func send(_ leased: [DeliveryRecord]) async {
        let found = await targets.find(leased, now: time.wallMilliseconds)
        let now = time.wallMilliseconds
        var ended: [DeliveryRecord] = []
        for (delivery, found) in zip(leased, found) {
            guard let message = delivery.message else {
                ended.append(end(delivery, .failed, outcome: "no message"))
                continue
            }
            guard message.expiresAt > now else {
                ended.append(end(delivery, .expired, outcome: "expired"))
                continue
            }
            switch found {
            case .target(let target, let lastAcceptedAt):
                hand(message, of: delivery, to: target, isNoteDue: lastAcceptedAt.map { now - $0 >= Self.acceptanceNotedEvery } ?? false, now: now)
            case .none(let reason): ended.append(end(delivery, .undeliverable, outcome: reason))
            case .unknown: ended.append(afterRetry(delivery, .retry(after: nil, reason: "store"), reason: "store"))
            }
        }
        await complete(ended)
    }

    /// - Parameter isNoteDue: whether it is time to write down that the gateway accepted this token.
    private func hand(_ message: PushMessage, of delivery: DeliveryRecord, to target: PushTarget, isNoteDue: Bool, now: Int64) {
        var sent = delivery
        sent.attempt = DeliveryAttempt(number: delivery.attempts, startedAt: now, endedAt: 0, answer: "")
        handed += 1
        let answers = answers
        gateway.send(message, to: target) { [sent] outcome in
            answers.post(Answer(delivery: sent, target: target, isNoteDue: isNoteDue, outcome: outcome))
        }
        if isSettling { return }
        isSettling = true
        Task { await settleAnswers() }
    }

    /// Works off what the gateways answer, as long as they have something to answer: what comes in while the store writes is written
    /// down together.
    private func settleAnswers() async {
        while handed > 0 {
            // The task is nobody's to cancel.
            if handed > Self.gatheringMin { try? await Task.sleep(for: Self.gathering) }
            guard let batch = await answers.next() else { break }
            handed -= batch.count
            var settled: [DeliveryRecord] = []
            for answer in batch { settled.append(await settle(answer)) }
            await noteAccepted(batch)
            await complete(settled)
        }
        isSettling = false
    }

    private struct Answer: Sendable {
        let delivery: DeliveryRecord
        let target: PushTarget
        let isNoteDue: Bool
        let outcome: PushOutcome
    }

    /// Side by side, so that the store writes them in one transaction.
    private func noteAccepted(_ answers: [Answer]) async {
        await withTaskGroup { group in
            for answer in answers {
                guard case .accepted(_, let other) = answer.outcome, answer.isNoteDue || other != nil else { continue }
                group.addTask { await self.noteAccepted(answer.target, other ?? answer.target.environment) }
            }
        }
    }

    private func noteAccepted(_ target: PushTarget, _ environment: APNsEnvironment) async {
        do {
            try await directory.noteAccepted(
                token: target.token, provider: target.provider, environment: environment, at: time.wallMilliseconds)
        } catch {
            // The next accepted push says it again.
            logger.error("that a token was accepted could not be written down", metadata: ["error": "\(error)"])
        }
    }

    /// Forgets a token that its gateway calls dead. What still waits for its device ends without an attempt when it comes up,
    /// because the token is looked up then.
    /// - Parameter deadSince: milliseconds since 1970; nil: the gateway gave no time.
    func remove(_ token: String, of provider: PushProvider, deadSince: Int64?) async {
        do {
            _ = try await directory.removeToken(token, provider: provider, deadSince: deadSince)
        } catch {
            logger.error("a dead token could not be removed", metadata: ["error": "\(error)"])
        }
    }

    /// What the delivery has become.
    private func settle(_ answer: Answer) async -> DeliveryRecord {
        let delivery = answer.delivery
        switch answer.outcome {
        case .accepted(let providerID, _):
            var delivery = delivery
            delivery.providerID = providerID
            return end(delivery, .accepted, outcome: "accepted")
        case .dead(let reason, let since, let isCertain):
            if isCertain { await remove(answer.target.token, of: answer.target.provider, deadSince: since) }
            return end(delivery, .failed, outcome: reason)
        case .rejected(let reason): return end(delivery, .failed, outcome: reason)
        case .skippedUnconfigured: return end(delivery, .skippedUnconfigured, outcome: "skipped_unconfigured")
        case .retry(_, let reason): return afterRetry(delivery, answer.outcome, reason: reason)
        }
    }

    /// The delivery as it goes on after an attempt that may be repeated.
    private func afterRetry(_ delivery: DeliveryRecord, _ outcome: PushOutcome, reason: String) -> DeliveryRecord {
        let now = time.wallMilliseconds
        let next = RetryPolicy.next(
            attempt: delivery.attempts, outcome: outcome, now: now, firstAttemptAt: delivery.message?.committedAt ?? now,
            expiresAt: delivery.message?.expiresAt ?? now, random: Double.random(in: 0..<1))
        switch next {
        case .giveUp(let why): return end(delivery, .failed, outcome: "\(reason): \(why)")
        case .at(let due):
            var delivery = end(delivery, .retry, outcome: reason)
            delivery.dueAt = due
            return delivery
        }
    }

    private func end(_ delivery: DeliveryRecord, _ state: DeliveryState, outcome: String) -> DeliveryRecord {
        var delivery = delivery
        delivery.state = state
        note(outcome, of: &delivery)
        return delivery
    }

    /// Writes down what deliveries have become, and has those go on that are to be tried again.
    private func complete(_ deliveries: [DeliveryRecord]) async {
        if deliveries.isEmpty { return }
        inFlight -= deliveries.count
        await write(deliveries)
        for var delivery in deliveries {
            if delivery.state != .retry {
                log(delivery)
            } else if !isClosed {
                // Written down; the next attempt is another one.
                delivery.attempt = nil
                queue.insert(delivery)
            }
        }
        pump()
    }

    private func log(_ ended: DeliveryRecord) {
        logger.debug(
            "push ended",
            metadata: [
                "push.nid": "\(ended.nid)", "push.state": "\(ended.state.rawValue)", "push.outcome": "\(ended.outcome ?? "")",
            ])
    }

    private func note(_ outcome: String, of delivery: inout DeliveryRecord) {
        delivery.outcome = outcome
        // Nil where no gateway was asked.
        delivery.attempt?.endedAt = time.wallMilliseconds
        delivery.attempt?.answer = outcome
    }

    /// An outcome that cannot be written leaves the store as it was: the delivery is repeated after the next start.
    @discardableResult
    private func write(_ deliveries: [DeliveryRecord]) async -> Bool {
        if deliveries.isEmpty { return true }
        do {
            try await store.update(deliveries)
            return true
        } catch {
            logger.error(
                "the outcome of pushes could not be stored",
                metadata: ["push.nid": "\(deliveries.first?.nid ?? "")", "count": "\(deliveries.count)", "error": "\(error)"])
            return false
        }
    }
}
