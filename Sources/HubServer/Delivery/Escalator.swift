internal import HubAPI
internal import HubCore
internal import HubDefinitions
internal import HubDelivery
internal import HubOutbox
internal import Logging

/// The task that carries out a `PushPlan`: writes settlements and late pushes to the store.
///
/// It is apart from the delivery task, because reading a roster and writing a thousand rows must keep no publish waiting. Work is done in
/// the order of its coming. Work that is lost with the process is asked for again at the next start.
final class Escalator: Sendable {
    private let inbox = Inbox<PushPlan.Work>()
    private let counts = Guarded((taken: 0, done: 0))
    private let reader: AudienceReader
    private let tokenAge: TokenAge
    private let store: any DeliveryStore
    private let outbox: Outbox
    private let pushes: any PushQueue
    private let time: any TimeSource
    private let logger: Logger

    /// Confirmations gather for this time between two writes.
    private static let gathering: Duration = .milliseconds(20)
    /// Nanoseconds that a roster counts as read now.
    private static let audienceAgeMax: UInt64 = 100_000_000

    init(
        reader: AudienceReader, store: any DeliveryStore, outbox: Outbox, pushes: (any PushQueue)? = nil, tokenAge: TokenAge = .standard,
        time: any TimeSource, logger: Logger
    ) {
        self.reader = reader
        self.tokenAge = tokenAge
        self.store = store
        self.outbox = outbox
        self.pushes = pushes ?? outbox
        self.time = time
        self.logger = logger
    }

    func post(_ work: PushPlan.Work) {
        counts.withLock { $0.taken += 1 }
        inbox.post(work)
    }

    /// Returns when all work that has come is in the store, or after a second.
    func settled() async {
        let taken = counts.withLock { $0.taken }
        await waitUntil(within: .seconds(1)) { [counts] in counts.withLock { $0.done } >= taken }
    }

    func close() { inbox.close() }

    /// Works until `close`. Call once.
    func run() async {
        var plan = PushPlan(tokenAge: tokenAge)
        while let items = await inbox.next() {
            plan.begin()
            // Pushes of many events fall due together after an outage, mostly to the same people.
            var known: [[String]: (audience: EventAudience?, definition: ChannelDefinition, readAt: UInt64)] = [:]
            for work in items {
                var audience: EventAudience?
                if let context = plan.need(of: work) {
                    let (people, now) = ([context.record.app, context.record.channel, context.event.name], time.monotonicNanoseconds)
                    if let known = known[people], known.definition == context.definition, now < known.readAt + Self.audienceAgeMax {
                        audience = known.audience
                    } else {
                        guard let read = await untilDone("a roster could not be read", { try await self.audience(context) })
                        else { continue }
                        known[people] = (read, context.definition, now)
                        audience = read
                    }
                }
                for problem in plan.take(work, audience, at: time.moment) {
                    logger.error("a push could not be rendered", metadata: ["error": "\(problem)"])
                }
                if plan.isFull { await write(plan.takeWrite()) }
            }
            await write(plan.takeWrite())
            await cancel(plan.takeLate())
            counts.withLock { $0.done += items.count }
            await pause()
        }
    }

    /// Lets confirmations gather.
    private func pause() async {
        do { try await Task.sleep(for: Self.gathering) } catch { return }
    }

    /// Read now, because roster, roles and tokens may have changed. Nil: the session is gone.
    private func audience(_ context: PushContext) async throws -> EventAudience? {
        do {
            return try await reader.audience(app: context.record.app, context.definition, context.placeholders, context.event)
        } catch is PublishRefusal {
            return nil
        }
    }

    /// Writes bits and rows, and sends pushes that are due. A refused write is tried again until the store takes it. The bit that ends a
    /// wait must not be written without the row of its push.
    private func write(_ write: PushPlan.Write?) async {
        guard let write else { return }
        let inserted = await untilDone("receipts and pushes could not be stored") {
            if write.rows.isEmpty {
                try await self.store.settle(write.settlements)
                return [PushRecord]()
            }
            return try await self.store.escalate(write.rows, write.settlements)
        }
        let due = inserted?.filter { $0.state == .due } ?? []
        if !due.isEmpty { await pushes.enqueue(due) }
    }

    /// - Returns: nil when the inbox was closed meanwhile; the next start then finds these events open.
    private func untilDone<Value: Sendable>(_ failure: String, _ work: () async throws -> Value) async -> Value? {
        while true {
            do { return try await work() } catch {
                logger.error("\(failure); trying again", metadata: ["error": "\(error)"])
                guard !inbox.isClosed else { return nil }
                do { try await Task.sleep(for: .seconds(1)) } catch { return nil }
            }
        }
    }

    // MARK: Late receipts

    /// Stops pushes on their way to a gateway, after the pushes that were due together with the receipt.
    /// - Parameter late: by event.
    private func cancel(_ late: [String: [PushPlan.LateReceipt]]) async {
        // Side by side, so that the store joins them to one transaction: a returning person has often missed dozens of events.
        await withTaskGroup { group in
            for (event, receipts) in late {
                group.addTask {
                    await self.cancel(event: event, receipts.map(\.cancellation))
                    for receipt in receipts { await self.clear(event: event, receipt) }
                }
            }
        }
    }

    private func cancel(event: String, _ cancellations: [PushCancellation]) async {
        do {
            let cancelled = try await store.cancelDeliveries(event: event, cancellations)
            if !cancelled.isEmpty { await outbox.drop(cancelled) }
        } catch {
            logger.error("a push that is no longer needed could not be cancelled", metadata: ["event": "\(event)", "error": "\(error)"])
        }
    }

    /// Takes the notification back from the participant's devices that have got it. One receipt after the other: the rows of the first keep
    /// the next from sending more.
    private func clear(event: String, _ receipt: PushPlan.LateReceipt) async {
        guard let device = receipt.clearingFrom else { return }
        do {
            let known = try await store.deliveries(event: event, user: receipt.cancellation.user)
            let clears = Clearing.deliveries(after: receipt.cancellation, on: device, among: known, now: time.wallMilliseconds)
            if clears.isEmpty { return }
            await pushes.enqueue(try await store.escalate(clears, []))
        } catch {
            logger.error("a notification could not be taken back from other devices", metadata: ["event": "\(event)", "error": "\(error)"])
        }
    }
}
