internal import HubAPI
internal import HubCore
internal import HubDelivery
internal import Logging
internal import Synchronization

/// Sends what was committed: leases a delivery before it is sent, writes down the outcome after, tries again when that is of use.
///
/// A delivery's lease is durable before its first byte leaves, so whatever happens in between is known to have possibly
/// happened: after a crash it is sent again under the same ids, which the devices fold into one.
///
/// Before its first attempt a delivery is ruled on: quiet hours, alert limits and the silent budget make it wait, durably, or end
/// it. That is this actor's own time; no publish waits for it.
actor Outbox: PushQueue {
    let gateway: any PushGateway
    let directory: any HubDelivery.Directory
    let targets: TargetReader
    let store: any DeliveryStore
    let time: any TimeSource
    let logger: Logger
    var queue = OutboxQueue()
    var rules: PushRules
    var inFlight = 0
    /// Of these, what the gateways have not answered.
    var handed = 0
    let answers = Inbox<Answer>()
    /// What delivery says of people who come back; looked at when their pushes leave.
    nonisolated let comebacks = Mutex(Comebacks())
    var counts = OutboxCounts()
    var isSettling = false
    private var isPumping = false
    var isClosed = false
    /// More was committed than is kept in memory: the store has the rest.
    var hasOverflowed = false
    /// Milliseconds since 1970.
    var reloadedAt: Int64 = 0
    /// When lanes without room are asked again; of lanes that nothing waits for, nothing.
    var laneWaits: [PushRoute: LaneWait] = [:]
    /// Lanes that had no room since something ended or came; they are not asked again before.
    var refused: Set<PushRoute> = []
    var timer: (dueAt: Int64, task: Task<Void, Never>)?
    /// `now` stands still against a wall clock that is set, until `followClock` has moved everything that waits.
    var clock: ClockSteps
    /// Milliseconds by which the wall clock was set since the start.
    var clockShift: Int64 = 0
    /// The latest of these.
    var clockSteps: [ClockSteps.Step] = []

    /// Deliveries kept in memory; beyond it they wait in the store.
    static let queuedMax = 100_000
    /// Deliveries handed to the gateways and not answered.
    static let inFlightMax = 4_000
    /// How long what waits for its lane stays in memory before the store is read again, in milliseconds.
    static let reloadSpacing: Int64 = 10_000
    /// The longest sleep, in milliseconds: times are those of the wall clock, which an operator may set meanwhile.
    static let sleepMillisecondsMax: Int64 = 30_000
    /// Deliveries leased in one transaction.
    static let leaseMax = 1_024
    /// With more than this many unanswered, outcomes are gathered for `gathering` and written down together: a transaction waits for
    /// the disk, however few rows it has. What a crash takes of them is sent again under the same ids.
    static let gatheringMin = 64
    static let gathering = Duration.milliseconds(20)
    /// A lease: how long an attempt may take before somebody else may repeat it, in milliseconds.
    static let leaseMilliseconds: Int64 = 30_000
    /// How often it is written down that a gateway accepted a token: often enough to tell living tokens from dead ones, and not a
    /// write for every push. In milliseconds.
    static let acceptanceNotedEvery: Int64 = 24 * 3600 * 1000

    init(
        gateway: any PushGateway, directory: any HubDelivery.Directory, store: any DeliveryStore, definitions: DefinitionSet,
        tokenAge: TokenAge = .standard, time: any TimeSource, logger: Logger
    ) {
        self.gateway = gateway
        self.directory = directory
        targets = TargetReader(directory: directory, tokenAge: tokenAge)
        self.store = store
        rules = PushRules(definitions: definitions)
        self.time = time
        self.logger = logger
        var clock = ClockSteps()
        _ = clock.look(time)
        self.clock = clock
    }

    /// Takes up what an earlier process left open: nothing that it leased is being sent any more.
    func resume() async throws {
        let open = try await store.openDeliveries(limit: Self.queuedMax)
        hasOverflowed = open.count == Self.queuedMax
        if !open.isEmpty { logger.info("taking up deliveries left open", metadata: ["push.open": "\(open.count)"]) }
        let now = now
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
    func enqueue(_ deliveries: [PushRecord]) {
        if hasOverflowed || queue.count + deliveries.count > Self.queuedMax {
            hasOverflowed = true
        } else {
            queue.reserve(deliveries.count)
            let ahead = time.wallMilliseconds - now
            for delivery in deliveries { queue.insert(abs(ahead) < ClockSteps.leastMilliseconds ? delivery : inTime(delivery, ahead)) }
        }
        pump()
    }

    /// Forgets deliveries that have been cancelled in the store.
    func drop(_ deliveries: [PushRecord]) {
        for delivery in deliveries {
            _ = queue.remove(nid: delivery.nid, device: delivery.device)
            log(delivery)
        }
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
    private func add(_ deliveries: [PushRecord]) {
        let now = now
        for delivery in deliveries {
            guard queue.count < Self.queuedMax else {
                hasOverflowed = true
                return
            }
            let delivery = delivery.shifted(by: missedShift(of: delivery, now: now))
            rules.restore(delivery, now: now)
            queue.insert(delivery)
        }
    }

    private func arm() {
        // Who waits for a free place is called when an answer frees one.
        let soonest = isClosed || inFlight >= Self.inFlightMax ? nil : [queue.nextDue(), nextRoom()].compactMap { $0 }.min()
        if timer?.dueAt == soonest { return }
        timer?.task.cancel()
        timer = nil
        guard let soonest else { return }
        let wait = min(max(0, soonest - now), Self.sleepMillisecondsMax)
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
    func pump() {
        refused = []
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
            followClock()
            let limit = min(Self.leaseMax, Self.inFlightMax - inFlight)
            let (expired, due) = divide(await takeDue(limit: queue.parkedCount == 0 ? limit : max(1, limit / 2)))
            let outcome = rules.rule(due, now: now)
            // In the queue before anything is awaited, so that whatever is cancelled meanwhile is found there.
            for delivery in outcome.waiting { queue.insert(delivery) }
            let ended = expired + outcome.ended + displaced(outcome.displaced)
            let parked = takeParked(limit: max(1, limit - due.count))
            if due.isEmpty, parked.isEmpty, ended.isEmpty {
                guard isReloadDue, !hasReloaded else { return }
                hasReloaded = true
                await reload()
                continue
            }
            hasReloaded = false
            let ready = await admit(parked, outcome.sending)
            // Sorting a large event into its lanes takes a while; answers that come meanwhile are not to wait for it.
            if ready.isEmpty { await Task.yield() }
            let isLeased = await lease(ready)
            let isWritten = await write(outcome.waiting.filter { queue.contains($0) } + ended) != nil
            for delivery in ended { log(delivery) }
            if !isLeased || !isWritten { return }
        }
    }

    /// What has expired is not asked about: it ends as it is.
    private func divide(_ due: [PushRecord]) -> (expired: [PushRecord], living: [PushRecord]) {
        let now = now
        guard due.contains(where: { $0.isExpired(now: now) }) else { return ([], due) }
        return (due.filter { $0.isExpired(now: now) }.map { end($0, .expired, outcome: "expired") }, due.filter { !$0.isExpired(now: now) })
    }

    /// Whether memory has room for what waits in the store. What waits for its lane is read again with the rest, so it is not done as
    /// often while there is such.
    private var isReloadDue: Bool {
        guard hasOverflowed, inFlight == 0, queue.parkedCount < Self.queuedMax / 2 else { return false }
        return queue.parkedCount == 0 || now >= reloadedAt + Self.reloadSpacing
    }

    /// Takes from the store what did not fit: the soonest due, in the place of what is here.
    private func reload() async {
        reloadedAt = now
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
}
