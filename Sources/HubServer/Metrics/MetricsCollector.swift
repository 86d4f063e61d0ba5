internal import HubAPI
internal import HubChannels
internal import HubPush
internal import HubStorage
internal import HubTransport
internal import HubWebhooks
internal import Synchronization

/// A copy of one loop's numbers.
struct LoopReading: Sendable {
    let loop: LoopCounters
    let engine: EngineCounters
}

/// Gathers what every part has counted, and writes it out for Prometheus.
///
/// Each part keeps plain numbers where it works: a loop on its own thread, added to once for a fan-out and never for a subscriber. A
/// reading asks each loop by its mailbox for a copy, takes the others' under their own locks, and adds up. So being counted costs a
/// delivery nothing, and being read costs a loop a message.
final class MetricsCollector: Sendable {
    private let ports: EnginePorts
    private let accepted: Acceptor.Counts
    private let delivery: DeliveryService
    private let outbox: Outbox
    private let gateway: PushRouter
    private let pushReports: PushReports
    private let store: SQLiteStore
    private let webhooks: WebhookService?

    /// - Parameter webhooks: nil when no app has any.
    init(
        ports: EnginePorts, accepted: Acceptor.Counts, delivery: DeliveryService, outbox: Outbox, gateway: PushRouter,
        pushReports: PushReports, store: SQLiteStore, webhooks: WebhookService?
    ) {
        self.ports = ports
        self.accepted = accepted
        self.delivery = delivery
        self.outbox = outbox
        self.gateway = gateway
        self.pushReports = pushReports
        self.store = store
        self.webhooks = webhooks
    }

    /// Hands over the whole text once, from a thread of its own. Not before every loop has come to the end of what it is doing.
    func read(done: @escaping @Sendable (String) -> Void) {
        let readings = LoopReadings(count: ports.count)
        for loop in 0..<ports.count {
            ports.post(
                .measure { [self] reading in
                    guard let all = readings.add(reading, of: loop) else { return }
                    // Off the loop: the rest waits for actors, and writing it all down takes a while.
                    Task { done(await text(all)) }
                }, to: loop)
        }
    }

    private func text(_ loops: [LoopReading]) async -> String {
        var text = MetricsText()
        text.connections(loops, accepted: accepted)
        text.messages(loops, stored: delivery.figures.withLock { $0.published })
        text.loops(loops)
        text.delivery(delivery.figures.withLock { $0 }, waiting: delivery.waitingCount)
        text.pushes(gateway.counts, alarms: pushReports.alarms)
        text.outbox(await outbox.figures)
        text.lanes(gateway.lanes)
        text.webhooks(await webhooks?.counters ?? WebhookCounters(), queues: await webhooks?.queues ?? [])
        text.store(store.figures)
        text.process(ProcessFacts.now())
        return text.text
    }

    /// What the loops have answered so far.
    private final class LoopReadings: Sendable {
        private let readings: Mutex<[Int: LoopReading]>
        private let count: Int

        init(count: Int) {
            self.count = count
            readings = Mutex([:])
        }

        /// - Returns: all of them, by the loops' order, once the last one is there.
        func add(_ reading: LoopReading, of loop: Int) -> [LoopReading]? {
            readings.withLock { readings in
                readings[loop] = reading
                return readings.count == count ? readings.sorted { $0.key < $1.key }.map(\.value) : nil
            }
        }
    }
}
