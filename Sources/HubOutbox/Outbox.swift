package import HubCore
package import HubDefinitions
package import HubDelivery
package import Logging
package import Synchronization

/// Sends what was committed: carries out the steps of a `PushFlow` against store, directory and gateway.
///
/// A push's lease is durable before its first byte leaves. After a crash the push is sent again under the same ids, and the devices fold
/// both into one. Rulings are made on the actor; no publish waits for them.
package actor Outbox: PushQueue {
    private let gateway: any PushGateway
    private let store: OutboxStore
    private let time: any TimeSource
    private let logger: Logger
    /// Every decision is the flow's.
    private(set) var flow: PushFlow
    private let answers = Inbox<PushFlow.Answer>()
    /// Delivery's reports of people who come back, read when their pushes leave.
    package nonisolated let comebacks = Mutex(Comebacks())
    private var isPumping = false
    private var isSettling = false
    private var timer: (due: Int64, task: Task<Void, Never>)?

    /// Longest sleep, in milliseconds: an operator may set the wall clock meanwhile.
    private static let sleepMillisecondsMax: Int64 = 30_000
    /// If more than this many pushes are unanswered, answers are gathered for `gathering` and stored together. A transaction waits for the
    /// disk, however few rows it has. After a crash, pushes whose answers were not stored are sent again under the same ids.
    private static let gatheringMin = 64
    private static let gathering = Duration.milliseconds(20)
    /// Gateways' answers that cannot be stored are tried again so often. After that their pushes are sent again by the next owner or start.
    private static let settlingRetries = 10

    package init(
        gateway: any PushGateway, directory: any PeopleStore, store: any DeliveryStore, definitions: DefinitionSet,
        tokenAge: TokenAge = .standard, time: any TimeSource, live: LiveStream? = nil, logger: Logger
    ) {
        self.gateway = gateway
        self.store = OutboxStore(directory: directory, store: store, time: time, logger: logger, live: live)
        self.time = time
        self.logger = logger
        flow = PushFlow(definitions: definitions, tokenAge: tokenAge, at: time.moment)
    }

    // MARK: For the server

    /// Takes up what an earlier process left open. Pushes that this process knows are not read again.
    /// - Throws: the store's error, if it cannot be read.
    /// - Parameter isMeant: whether a push is this process's.
    package func resume(_ isMeant: @escaping @Sendable (OpenPush) -> Bool = { _ in true }) async throws {
        let known = flow.known
        let open = try await store.store.openDeliveries(limit: PushFlow.queuedMax) { !known.contains(PushName($0)) && isMeant($0) }
        if !open.isEmpty { logger.info("taking up deliveries left open", metadata: ["push.open": "\(open.count)"]) }
        flow.resume(open, isWhole: open.count < PushFlow.queuedMax, at: time.moment)
        pump()
    }

    /// Rules by other definitions from now on.
    package func change(to definitions: DefinitionSet) {
        flow.change(to: definitions)
    }

    /// Takes pushes that are committed in the state `due`.
    package func enqueue(_ deliveries: [PushRecord]) {
        flow.enqueue(deliveries, at: time.moment)
        pump()
    }

    /// Forgets pushes that have been cancelled in the store.
    package func drop(_ deliveries: [PushRecord]) {
        flow.drop(deliveries)
        report()
    }

    /// Gives up the pushes that wait and are another process's from now on.
    package func keep(_ isKept: @Sendable (PushRecord) -> Bool) {
        flow.keep(isKept)
    }

    /// Sends nothing more; open pushes stay open in the store. Answers of the gateways are still stored.
    package func close() {
        timer?.task.cancel()
        flow.close()
    }

    /// Forgets a token that its gateway calls dead. Pushes that wait for its device end without an attempt when their turn comes.
    /// - Parameter deadSince: milliseconds since 1970; nil: the gateway gave no time.
    package func remove(_ token: String, app: String, of provider: PushProvider, deadSince: Int64?) async {
        await store.remove(token, app: app, of: provider, deadSince: deadSince)
    }

    /// Pushes in the gateways' hands.
    package var sending: Int { flow.inFlight }

    /// Costs as much as what waits.
    package var figures: OutboxCounters { flow.counters(at: time.moment) }

    // MARK: Rounds

    /// Has the flow worked off by a task of its own, so that no caller who adds to the queue waits for it. One task runs at a time.
    private func pump() {
        if isPumping || flow.isClosed { return }
        isPumping = true
        Task {
            var step = flow.start(at: time.moment)
            report()
            while let asked = step {
                step = await carryOut(asked)
                report()
            }
            isPumping = false
            sleep()
        }
    }

    private func sleep() {
        let wake = flow.wake(at: time.moment)
        if timer?.due == wake?.due { return }
        timer?.task.cancel()
        timer = nil
        guard let wake else { return }
        let wait = min(max(0, wake.wait), Self.sleepMillisecondsMax)
        let task = Task { [weak self] in
            do { try await Task.sleep(for: .milliseconds(wait)) } catch { return }
            await self?.wake()
        }
        timer = (wake.due, task)
    }

    private func wake() {
        timer = nil
        pump()
    }

    /// - Returns: the next step; nil: nothing can go out.
    private func carryOut(_ step: PushFlow.Step) async -> PushFlow.Step? {
        switch step {
        case .readChannels(let events):
            let channels = await store.channels(of: events)
            return flow.learned(channels: channels, at: time.moment)
        case .readZones(let pushes):
            let zones = await store.zones(of: pushes)
            return flow.learned(zones: zones, at: time.moment)
        case .askRooms(let routes): return flow.asked(rooms: routes.map { gateway.room(on: $0) }, at: time.moment)
        case .askWaits(let pushes): return flow.asked(waits: waits(of: pushes), at: time.moment)
        case .lookUp(let devices):
            let (found, unread) = await store.targets(of: devices)
            return flow.lookedUp(found, unread: unread, at: time.moment)
        case .readDevices(let users):
            let devices = await store.devices(of: users, failure: OutboxStore.waitingNotFollowed)
            return flow.read(devices: devices, at: time.moment)
        case .redirect(let redirections, let now):
            let outcomes = await store.redirect(redirections, now: now, failure: OutboxStore.waitingNotFollowed)
            return flow.redirected(outcomes, at: time.moment)
        case .admit(let candidates): return flow.admitted(gateway.admit(candidates), at: time.moment)
        case .pause:
            await Task.yield()
            return flow.paused(at: time.moment)
        case .lease(let pushes):
            let leased = await store.lease(pushes)
            return flow.leased(leased, at: time.moment)
        case .hand(let handovers):
            for handover in handovers { hand(handover) }
            settle()
            return flow.handedOver(at: time.moment)
        case .complete(let pushes):
            let withdrawn = await store.update(pushes)
            return flow.completed(withdrawn, at: time.moment)
        case .write(let pushes):
            let isWritten = await store.update(pushes) != nil
            return flow.written(isWritten, at: time.moment)
        case .reload(let limit):
            let open = await store.reload(limit: limit)
            return flow.reloaded(open, at: time.moment)
        }
    }

    private func waits(of pushes: [PushRecord]) -> [Int: Int64] {
        let now = time.moment
        return comebacks.withLock { comebacks in
            var waits: [Int: Int64] = [:]
            for (place, push) in pushes.enumerated() {
                if let wait = comebacks.wait(of: push, at: now) { waits[place] = wait }
            }
            return waits
        }
    }

    private func hand(_ handover: PushFlow.Handover) {
        let (attempt, answers, departure) = (handover.attempt, answers, Departure())
        let departs: @Sendable () -> Bool = { [self, push = attempt.push] in
            let now = time.moment
            guard let wait = comebacks.withLock({ $0.wait(of: push, at: now) }) else { return true }
            departure.keep(wait)
            return false
        }
        gateway.send(handover.message, to: attempt.target, departs: departs) { outcome in
            answers.post(PushFlow.Answer(attempt, outcome, keptBack: departure.keptMilliseconds))
        }
    }

    /// A push that was handed over and may be kept back until it leaves.
    private final class Departure: Sendable {
        /// For how many milliseconds it was kept back; 0: it left.
        private let kept = Atomic<Int64>(0)

        /// Nil: it left.
        var keptMilliseconds: Int64? {
            let kept = kept.load(ordering: .acquiring)
            return kept > 0 ? kept : nil
        }

        func keep(_ milliseconds: Int64) { kept.store(milliseconds, ordering: .releasing) }
    }

    // MARK: Settlements

    /// Works off what the gateways answer by a task of its own, while they have something to answer. Answers that come while the store
    /// writes are stored together.
    private func settle() {
        if isSettling { return }
        isSettling = true
        Task {
            while flow.unanswered > 0 {
                // Nobody cancels the task.
                if flow.unanswered > Self.gatheringMin { try? await Task.sleep(for: Self.gathering) }
                guard let batch = await answers.next() else { break }
                var step = flow.answered(batch, at: time.moment)
                pump()
                while let asked = step {
                    step = await carryOut(asked)
                    report()
                }
            }
            isSettling = false
        }
    }

    private func carryOut(_ step: PushFlow.Settling) async -> PushFlow.Settling? {
        switch step {
        case .note(let notes):
            await store.write(notes)
            return flow.noted(at: time.moment)
        case .readDevices(let users):
            let devices = await store.devices(of: users, failure: OutboxStore.deadNotFollowed)
            return flow.reread(devices: devices, at: time.moment)
        case .redirect(let redirections, let now):
            let outcomes = await store.redirect(redirections, now: now, failure: OutboxStore.deadNotFollowed)
            let next = flow.followed(outcomes, at: time.moment)
            pump()
            return next
        case .update(let pushes):
            let withdrawn = await store.update(pushes, retries: Self.settlingRetries)
            flow.settled(withdrawn, at: time.moment)
            pump()
            return nil
        }
    }

    // MARK: The log

    private func report() {
        for note in flow.takeNotes() {
            switch note {
            case .ended(let nid, let state, let outcome):
                logger.debug(
                    "push ended", metadata: ["push.nid": "\(nid)", "push.state": "\(state.rawValue)", "push.outcome": "\(outcome ?? "")"])
            case .clockSet(let step, let waiting):
                timer?.task.cancel()
                timer = nil
                logger.warning(
                    "the wall clock was set; what waits goes on waiting for as long as before",
                    metadata: [
                        "clock.from": .string(Timestamp.iso8601(milliseconds: step.from)),
                        "clock.to": .string(Timestamp.iso8601(milliseconds: step.to)),
                        "clock.seconds": "\(step.milliseconds / 1000)", "push.waiting": "\(waiting)",
                    ])
            case .unknownZone(let timezone, let nid):
                logger.warning(
                    "a device names a time zone that this machine does not know; its quiet hours go by the definition's",
                    metadata: ["push.nid": "\(nid)", "timezone": "\(timezone.quotable(64))"])
            }
        }
    }
}
