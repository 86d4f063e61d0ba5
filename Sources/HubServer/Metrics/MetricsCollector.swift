internal import HubChannels
internal import HubOutbox
internal import HubPush
internal import HubScaleOut
internal import HubStorage
internal import HubTransport
internal import HubWebhooks
internal import Synchronization

/// A copy of one loop's counters.
struct LoopReading: Sendable {
    let loop: LoopCounters
    let engine: EngineCounters
}

/// Gathers the counters of all parts, and writes them for Prometheus.
///
/// Each part keeps plain numbers where it works. A loop counts on its own thread, once per fan-out and never per subscriber. A reading asks
/// each loop by mailbox for a copy, takes all others under their own locks, and adds up. So counting costs a delivery nothing, and a
/// reading costs a loop one message.
final class MetricsCollector: Sendable {
    private let ports: EnginePorts
    private let accepted: Acceptor.Counts
    private let delivery: DeliveryService
    private let outbox: Outbox
    private let gateway: PushRouter
    private let pushReports: PushReports
    private let store: any HubStore
    private let webhooks: WebhookService?
    private let backplane: RedisBackplane?
    private let exchange: NodeExchange?

    /// - Parameters:
    ///   - webhooks: nil if no app has webhooks.
    ///   - backplane: nil for a single node, as `exchange`.
    init(
        ports: EnginePorts, accepted: Acceptor.Counts, delivery: DeliveryService, outbox: Outbox, gateway: PushRouter,
        pushReports: PushReports, store: any HubStore, webhooks: WebhookService?, backplane: RedisBackplane?, exchange: NodeExchange?
    ) {
        self.ports = ports
        self.accepted = accepted
        self.delivery = delivery
        self.outbox = outbox
        self.gateway = gateway
        self.pushReports = pushReports
        self.store = store
        self.webhooks = webhooks
        self.backplane = backplane
        self.exchange = exchange
    }

    /// Hands over the whole text once, from a task of its own, after every loop has finished its present work.
    func read(done: @escaping @Sendable (String) -> Void) {
        let readings = LoopReadings(count: ports.count)
        for loop in 0..<ports.count {
            ports.post(
                .measure { [self] reading in
                    guard let all = readings.add(reading, of: loop) else { return }
                    // The rest waits for actors and formats the text, which takes too long for a loop.
                    Task { done(await text(all)) }
                }, to: loop)
        }
    }

    private func text(_ loops: [LoopReading]) async -> String {
        var text = MetricsText()
        text.connections(loops, accepted: accepted)
        text.messages(loops, stored: delivery.counters.withLock { $0.published })
        text.loops(loops)
        text.delivery(delivery.counters.withLock { $0 }, waiting: delivery.waitingCount)
        text.pushes(gateway.counts, alarms: pushReports.alarms)
        text.outbox(await outbox.figures)
        text.lanes(gateway.lanes)
        text.webhooks(await webhooks?.counters ?? WebhookCounters(), queues: await webhooks?.queues ?? [])
        text.store(store.figures)
        if let figures = store.postgres { text.postgres(figures) }
        if let backplane { text.backplane(backplane.figures, skipped: exchange?.unreadableCount ?? 0) }
        text.process(ProcessFacts.now())
        return text.text
    }

    /// Readings of the loops that have answered so far.
    private final class LoopReadings: Sendable {
        private let readings: Mutex<[Int: LoopReading]>
        private let count: Int

        init(count: Int) {
            self.count = count
            readings = Mutex([:])
        }

        /// - Returns: all readings in the loops' order, once the last one has come; nil before.
        func add(_ reading: LoopReading, of loop: Int) -> [LoopReading]? {
            readings.withLock { readings in
                readings[loop] = reading
                return readings.count == count ? readings.sorted { $0.key < $1.key }.map(\.value) : nil
            }
        }
    }
}
