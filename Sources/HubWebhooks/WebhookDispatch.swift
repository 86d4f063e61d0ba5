internal import HubCore
internal import HubDelivery
internal import HubHTTPClient
internal import Logging
internal import PusherProtocol

/// Turns facts into batches, makes them durable and sends them. Drives the state machines, one input at a time.
///
/// A node among several does so for the apps whose webhooks it owns.
actor WebhookDispatch {
    private let inbox: FactInbox
    let store: any WebhookStore
    private let client: CurlMulti
    let time: any TimeSource
    let logger: Logger
    var lanes: [EndpointLane]
    /// Indices in `lanes` per app.
    let lanesOfApp: [Int: [Int]]
    /// Keys are indexes of apps.
    var apps: [Int: AppFacts]
    /// Nil on a single node.
    var owners: WebhookOwners?
    private var inboxLosses: LossLog
    var counters = WebhookCounters()

    /// Rows of ended batches, to be deleted.
    private(set) var ended: [Int64] = []
    /// Latest time for their deletion.
    private var removalDue: UInt64?
    private var isWriting = false
    private var writesEnded = 0
    private var writePausedUntil: UInt64 = 0

    private var timer: Task<Void, Never>?
    private var timerDue: UInt64?
    /// Set at the end: no attempts or timers any more.
    private var isClosed = false

    init(
        _ endpoints: [WebhookEndpoint], inbox: FactInbox, store: any WebhookStore, client: CurlMulti, time: any TimeSource,
        logger: Logger, attemptTimeout: Duration, owns: (@Sendable (_ app: String) -> Bool)?
    ) {
        self.inbox = inbox
        self.store = store
        self.client = client
        self.time = time
        self.logger = logger
        lanes = endpoints.map { EndpointLane($0, logger: logger) }
        lanesOfApp = Dictionary(grouping: endpoints.indices) { endpoints[$0].app }
        owners = owns.map { WebhookOwners(owns: $0, attemptsEnd: attemptTimeout + attemptTimeout / 8) }
        let appCount = lanesOfApp.count
        apps = lanesOfApp.mapValues { lanes in
            AppFacts(
                app: endpoints[lanes[0]].appID, heldMax: max(1000, WebhookLimits.heldMax / appCount),
                recentBytesMax: owns == nil ? nil : WebhookLimits.recentBytesMax / appCount)
        }
        inboxLosses = LossLog(logger: logger)
    }

    // MARK: One turn

    /// Handles everything that is due.
    func turn() {
        let (reports, dropped) = inbox.takeAll()
        counters.factsDropped += dropped
        inboxLosses.add(.inboxFull, dropped)
        followOwners()
        for report in reports {
            // Settles up to each report's own time, so that a late turn gives the same order.
            for fact in report.facts { for told in apps[fact.app]?.take(fact, now: report.at) ?? [] { tell(told, now: report.at) } }
        }
        let now = time.monotonicNanoseconds
        for app in apps.keys { for settled in apps[app]?.settle(now: now) ?? [] { tell(settled, now: now) } }
        for index in lanes.indices {
            for events in lanes[index].takeDue(now: now) { close(events, index) }
        }
        advance()
    }

    func tell(_ fact: ChannelFact, now: UInt64) {
        var text: [UInt8]?
        for index in lanesOfApp[fact.app] ?? [] where lanes[index].endpoint.kinds.contains(fact.event.kind) {
            let event = text ?? WebhookText.event(fact)
            text = event
            for full in lanes[index].add(event, isEncrypted: fact.channel.kind.isEncrypted, now: now) { close(full, index) }
        }
    }

    /// Makes and queues the request of these events. Its bytes never change afterwards.
    private func close(_ events: [UInt8], _ index: Int) {
        let batch = lanes[index].endpoint.batch(timeMilliseconds: time.wallMilliseconds, events: events)
        append(batch, row: nil, index)
    }

    func append(_ batch: WebhookBatch, row: Int64?, _ index: Int) {
        let dropped = lanes[index].queue.append(batch, row: row)
        counters.batchesDropped += dropped.count
        lanes[index].losses.add(.queueFull, dropped.count)
        for entry in dropped { remove(entry.row) }
    }

    /// Makes the requests of everything that the app's collectors hold.
    func flush(_ app: Int) {
        for index in lanesOfApp[app] ?? [] { for events in lanes[index].takeDue(now: .max) { close(events, index) } }
    }

    /// Drops expired batches, starts due attempts, starts due writes, and sets the timer for the rest.
    func advance() {
        let now = time.monotonicNanoseconds
        let wall = time.wallMilliseconds
        inboxLosses.flush(now: now)
        for index in lanes.indices {
            let expired = lanes[index].queue.takeExpired(wallMilliseconds: wall)
            counters.batchesExpired += expired.count
            lanes[index].losses.add(.expired, expired.count)
            for entry in expired { remove(entry.row) }
            lanes[index].losses.flush(now: now)
            startNext(index, now: now)
        }
        startWriting(now: now)
        arm(now: now, wall: wall)
    }

    // MARK: Sending

    private func startNext(_ index: Int, now: UInt64) {
        guard !isClosed, let entry = lanes[index].queue.takeNext(now: now) else { return }
        counters.attempts += 1
        client.submit(EndpointLane.call(entry.batch)) { result in
            Task { await self.attemptEnded(entry.number, index, result) }
        }
    }

    private func attemptEnded(_ number: Int, _ index: Int, _ result: Result<HTTPAnswer, HTTPClientError>) {
        let outcome = AttemptOutcome(result)
        let entry = lanes[index].queue.ended(
            number, outcome, now: time.monotonicNanoseconds, random: Double.random(in: 0..<1))
        guard let entry else {
            // Its app has another owner, who is to know that the request came.
            if let row = owners?.takeOrphan(lane: index, number), outcome == .delivered {
                remove(row)
                advance()
            }
            return
        }
        // Shutting down the client says nothing about the endpoint.
        if case .failure(let error) = result, error.reason == .shutDown { return }
        lanes[index].note(outcome, failures: entry.failures)
        if outcome == .delivered {
            counters.batchesDelivered += 1
            remove(entry.row)
        } else {
            counters.attemptsFailed += 1
        }
        advance()
    }

    // MARK: Storing

    func remove(_ row: Int64?) {
        guard let row else { return }
        ended.append(row)
        removalDue = removalDue ?? time.monotonicNanoseconds + WebhookLimits.removalGroupingNanoseconds
    }

    private func hasToWrite(now: UInt64) -> Bool {
        guard writePausedUntil <= now else { return false }
        if let removalDue, removalDue <= now { return true }
        return lanes.contains { !$0.queue.unstored(limit: 1).isEmpty }
    }

    private func startWriting(now: UInt64) {
        guard !isWriting, hasToWrite(now: now) else { return }
        isWriting = true
        Task { await self.write() }
    }

    /// One transaction: inserts new batches and deletes ended ones.
    private func write() async {
        assert(isWriting, "webhooks are written twice at once")
        var adding: [(lane: Int, number: Int, batch: WebhookBatch)] = []
        var marks: [WebhookMark] = []
        for app in lanesOfApp.keys.sorted() where adding.count < WebhookLimits.writeBatchesMax {
            let own = lanesOfApp[app] ?? []
            guard own.contains(where: { !lanes[$0].queue.unstored(limit: 1).isEmpty }) else { continue }
            // A mark covers everything that was told, so all of it is written with the mark.
            if owners != nil { flush(app) }
            for index in own {
                let limit = owners == nil ? WebhookLimits.writeBatchesMax - adding.count : .max
                adding += lanes[index].queue.unstored(limit: limit).map { (index, $0.number, $0.batch) }
            }
            if let mark = apps[app]?.mark { marks.append(mark) }
        }
        let turn = owners?.turns
        let removing = ended
        ended = []
        removalDue = nil
        do {
            let rows = try await store.updateWebhooks(adding: adding.map(\.batch), removing: removing, marks: marks)
            assert(rows.count == adding.count, "\(adding.count) batches were stored in \(rows.count) rows")
            for (new, row) in zip(adding, rows) {
                // The next owner takes it up.
                let app = lanes[new.lane].endpoint.app
                if owners?.turns[app] != turn?[app] { continue }
                if !lanes[new.lane].queue.stored(new.number, row: row) { remove(row) }
            }
        } catch {
            let now = time.monotonicNanoseconds
            ended = removing + ended
            removalDue = ended.isEmpty ? nil : now
            writePausedUntil = now + WebhookLimits.writePauseNanoseconds
            logger.info("webhooks could not be stored; trying again", metadata: ["error": "\(error)"])
        }
        isWriting = false
        writesEnded += 1
        advance()
    }

    /// Waits for the end of the write that is under way.
    func endWriting() async throws {
        let ended = writesEnded
        while isWriting, writesEnded == ended { try await Task.sleep(for: WebhookLimits.writeLook) }
    }

    // MARK: Time

    private func arm(now: UInt64, wall: Int64) {
        guard !isClosed else { return }
        var next = apps.values.compactMap(\.nextDue) + [inboxLosses.nextDue].compactMap { $0 }
        if owners != nil { next.append(now + WebhookLimits.ownersNanoseconds) }
        // During a write no timer is needed for storage, because the write's end calls `advance`.
        if !isWriting {
            if let removalDue { next.append(max(removalDue, writePausedUntil)) }
            if lanes.contains(where: { !$0.queue.unstored(limit: 1).isEmpty }) { next.append(writePausedUntil) }
        }
        for lane in lanes {
            if let due = lane.batchDue { next.append(due) }
            if let due = lane.queue.nextAttempt { next.append(due) }
            if let due = lane.losses.nextDue { next.append(due) }
            if let expiry = lane.queue.nextExpiry { next.append(now + UInt64(max(0, expiry - wall)) * 1_000_000) }
        }
        guard let due = next.min() else { return }
        if timer != nil, let timerDue, timerDue <= due { return }
        timer?.cancel()
        timerDue = due
        // At least a millisecond, so that a clock stopped by a test does not cause a busy loop.
        let wait = max(1_000_000, due - min(due, now))
        timer = Task { [weak self] in
            do { try await Task.sleep(for: .nanoseconds(wait)) } catch { return }
            await self?.timerFired()
        }
    }

    private func timerFired() {
        timer = nil
        timerDue = nil
        turn()
    }

    // MARK: Start and end

    /// Loads the batches of an earlier process. Deletes those that expired or whose address is no longer configured. A node among
    /// several takes apps one by one, each with its batches.
    func resume() async throws {
        if owners != nil { return turn() }
        takeUp(try await openBatches { _ in true })
        advance()
    }

    /// The stored batches of these apps.
    func openBatches(_ isWanted: (_ app: String) -> Bool) async throws -> [StoredWebhook] {
        var open: [StoredWebhook] = []
        var row: Int64 = 0
        while true {
            let page = try await store.webhooks(after: row, limit: WebhookLimits.resumePageRows)
            guard let last = page.last else { return open }
            assert(page.count <= WebhookLimits.resumePageRows && last.row > row, "\(page.count) rows after \(row) end with \(last.row)")
            row = last.row
            open += page.filter { isWanted($0.batch.app) }
        }
    }

    /// Queues stored batches. Deletes those that expired or whose address is no longer configured.
    func takeUp(_ batches: [StoredWebhook]) {
        var (taken, expired, unknown) = ([Int: Int](), 0, 0)
        for stored in batches {
            if stored.batch.hasExpired(at: time.wallMilliseconds) {
                expired += 1
                remove(stored.row)
            } else if let index = lanes.firstIndex(where: {
                $0.endpoint.appID == stored.batch.app && $0.endpoint.url == stored.batch.url
            }) {
                taken[index, default: 0] += 1
                append(stored.batch, row: stored.row, index)
            } else {
                unknown += 1
                remove(stored.row)
            }
        }
        counters.batchesExpired += expired
        for (index, count) in taken { lanes[index].noteTakenUp(count) }
        if expired > 0 { logger.info("stored webhooks dropped: more than five minutes old", metadata: ["webhook.lost": "\(expired)"]) }
        if unknown > 0 {
            logger.info(
                "stored webhooks dropped: their addresses are no longer configured", metadata: ["webhook.lost": "\(unknown)"])
        }
    }

    /// Makes and stores batches of all waiting facts, removals included, then delivers until `deadline` on the monotonic clock. The rest
    /// stays in the store for the next start.
    func finish(deadline: UInt64) async {
        turn()
        let now = time.monotonicNanoseconds
        for app in apps.keys {
            for fact in apps[app]?.settleAll() ?? [] { tell(fact, now: now) }
            flush(app)
        }
        advance()
        while time.monotonicNanoseconds < deadline, lanes.contains(where: { !$0.queue.isEmpty }) { await pause() }
        isClosed = true
        timer?.cancel()
        client.shutdown()
        for _ in 0..<Self.lastPausesMax where isBusy {
            if !ended.isEmpty { removalDue = 0 }
            startWriting(now: time.monotonicNanoseconds)
            await pause()
        }
        inboxLosses.flush(now: time.monotonicNanoseconds, isLast: true)
        for index in lanes.indices { lanes[index].losses.flush(now: time.monotonicNanoseconds, isLast: true) }
        let left = lanes.reduce(0) { $0 + $1.queue.count }
        if left > 0 { logger.info("webhooks left for the next start", metadata: ["webhook.batches": "\(left)"]) }
    }

    /// Whether an attempt's end is outstanding, or the store lags behind.
    private var isBusy: Bool {
        isWriting || !ended.isEmpty || lanes.contains { $0.queue.inFlight != nil || !$0.queue.unstored(limit: 1).isEmpty }
    }

    /// Pauses before giving up on the store: two seconds or more.
    private static let lastPausesMax = 200
    private static let pauseLength = Duration.milliseconds(10)

    func pause() async {
        do { try await Task.sleep(for: Self.pauseLength) } catch { return }
    }
}
