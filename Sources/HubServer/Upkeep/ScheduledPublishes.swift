internal import HubAPI
internal import HubChannels
internal import HubCore
internal import HubDelivery
internal import Logging
internal import PusherProtocol

/// Publishes scheduled events when their time has come, on the same way as all others.
///
/// Waiting publishes are only in the store. The transaction of a publish's commit ends its row. So a crash leaves either the row, which is
/// due at the next start, or the events. One task sleeps until the next publish is due.
final class ScheduledPublishes: SchedulePort {
    private let inbox = Inbox<Void>()
    private let alarm = Alarm()
    private let store: any DeliveryStore
    private let apps: AppDirectory
    private let delivery: any EventPort
    private let nodes: NodeDelivery?
    private let time: any TimeSource
    private let logger: Logger

    /// Most publishes that are handed over together.
    static let batchMax = 64
    /// Milliseconds after which a publish is tried again that failed for a temporary reason.
    static let retryMilliseconds: Int64 = 1000
    /// Longest sleep in milliseconds: due times are the wall clock's, which an operator may set.
    static let sleepMillisecondsMax: Int64 = 30_000

    /// - Parameter nodes: tells which channels are this node's; nil: all are.
    init(
        store: any DeliveryStore, apps: AppDirectory, delivery: any EventPort, nodes: NodeDelivery? = nil, time: any TimeSource,
        logger: Logger
    ) {
        self.nodes = nodes
        self.store = store
        self.apps = apps
        self.delivery = delivery
        self.time = time
        self.logger = logger
    }

    func schedule(_ publishes: [ScheduledPublish], answers: [AnswerRecord]) async throws {
        try await store.schedule(publishes, answers: answers)
        wake()
    }

    /// Looks for due publishes soon.
    func wake() {
        // One entry is enough; one more may arrive while it is handled.
        _ = inbox.offer((), limit: 1)
    }

    /// Stops after the publishes that are under way.
    func close() { inbox.close() }

    /// Runs until `close`; called once.
    func run() async {
        wake()
        while await inbox.next() != nil {
            var next: Int64?
            do {
                // One question a look while nothing is due: other programs may have published, so there is a look each second.
                next = try await store.nextScheduledAt()
                if let due = next, due <= time.wallMilliseconds {
                    let isHeldUp = try await publishDue()
                    next = isHeldUp ? time.wallMilliseconds + Self.retryMilliseconds : try await store.nextScheduledAt()
                }
            } catch {
                logger.error("scheduled events could not be read; trying again", metadata: ["error": "\(error)"])
                next = time.wallMilliseconds + Self.retryMilliseconds
            }
            let now = time.wallMilliseconds
            alarm.set(at: next.map { min($0, now + Self.sleepMillisecondsMax) }, now: now) { [weak self] in self?.wake() }
        }
        alarm.set(at: nil, now: time.wallMilliseconds) {}
    }

    /// - Returns: whether a due publish has to be tried again.
    private func publishDue() async throws -> Bool {
        while true {
            let due = try await store.dueScheduled(now: time.wallMilliseconds, limit: Self.batchMax)
            let own = due.filter(isOwn)
            // Others publish theirs, or their successors will.
            guard !own.isEmpty else { return !due.isEmpty }
            var isHeldUp = false
            for (publish, refusal) in await handOver(own) {
                switch refusal {
                // The publish was cancelled at the last moment.
                case nil, PublishRefusal.notWaiting: break
                case let refusal? where refusal.status == 503: isHeldUp = true
                case let refusal?: try await fail(publish, refusal.sentence)
                }
            }
            if isHeldUp || inbox.isClosed { return isHeldUp }
        }
    }

    /// A request that cannot be read is refused by whoever comes first.
    private func isOwn(_ publish: ScheduledPublish) -> Bool {
        guard let nodes, let app = apps.app(id: publish.app), let request = try? ScheduledRequest.decode(publish.request, app: app),
            let channel = request.channels.first
        else { return true }
        return nodes.ownedNow.contains(app: app.id, channel: channel.text)
    }

    /// Submits publishes in order without waiting in between, so that they are committed together.
    private func handOver(_ due: [ScheduledPublish]) async -> [(ScheduledPublish, PublishRefusal?)] {
        let (answers, continuation) = AsyncStream.makeStream(of: (Int, PublishRefusal?).self)
        for (index, publish) in due.enumerated() {
            do throws(PublishRefusal) {
                let command = try command(publish) { continuation.yield((index, $0)) }
                if !delivery.submit(command) {
                    continuation.yield((index, PublishRefusal(status: 503, sentence: "too many publishes are waiting to be stored")))
                }
            } catch {
                continuation.yield((index, error))
            }
        }
        var answered: [(ScheduledPublish, PublishRefusal?)] = []
        for await (index, refusal) in answers {
            answered.append((due[index], refusal))
            if answered.count == due.count { break }
        }
        return answered
    }

    /// The app and its limits are checked again, and delivery checks session and data as of now.
    private func command(
        _ publish: ScheduledPublish, answer: @escaping @Sendable (PublishRefusal?) -> Void
    ) throws(PublishRefusal) -> PublishCommand {
        guard let app = apps.app(id: publish.app) else {
            throw PublishRefusal(status: 404, sentence: "the app is not in the configuration any more")
        }
        guard app.isEnabled else { throw PublishRefusal(status: 403, sentence: "the app is disabled") }
        let request: PublishRequest
        do {
            request = try ScheduledRequest.decode(publish.request, app: app)
        } catch {
            throw PublishRefusal(status: error.status, sentence: error.message)
        }
        var command = PublishCommand(
            app: app, requests: [request], purpose: .scheduled(id: publish.id), arrivedAt: time.monotonicNanoseconds
        ) { result in
            if case .failure(let refusal) = result { answer(refusal) } else { answer(nil) }
        }
        if nodes != nil {
            command.ids = [PublishID(text: publish.id, time: publish.deliverAt)]
            command.mayBeKnown = true
        }
        return command
    }

    private func fail(_ publish: ScheduledPublish, _ sentence: String) async throws {
        // The reason may quote the event's data, which must not be logged.
        logger.warning(
            "a scheduled event was refused when its time came: see GET /apps/{app}/scheduled?state=failed",
            metadata: ["app": "\(publish.app)", "scheduled.id": "\(publish.id)"])
        try await store.failScheduled(id: publish.id, outcome: sentence, now: time.wallMilliseconds)
    }
}
