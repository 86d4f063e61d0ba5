package import HubChannels
package import HubCore
package import HubDelivery
internal import HubHTTPClient
package import Logging
internal import PusherProtocol

/// Tells the apps' own servers what happens to their channels (docs/protocol.md, 6).
///
/// Facts come in from the loops, which never wait; everything else happens in tasks and on the HTTP client's thread. Every
/// endpoint has a queue of its own and one request under way, so a slow or dead one costs nothing but its own queue.
package final class WebhookService: Sendable {
    private let inbox: FactInbox
    private let dispatch: WebhookDispatch
    private let time: any TimeSource
    /// What some endpoint of each app, by index, needs to know of.
    private let kinds: [Int: ChannelFact.Kinds]

    /// Starts the HTTP client's thread; nothing is sent before `resume`, `report` or both.
    /// - Parameters:
    ///   - inboxBytesMax: about what the facts that wait may take up; beyond it the newest are dropped.
    ///   - attemptTimeout: from connecting to the end of the answer.
    /// - Throws: when the HTTP client cannot start; the sentence says why.
    package init(
        endpoints: [WebhookEndpoint], store: any WebhookStore, time: any TimeSource, logger: Logger,
        inboxBytesMax: Int = WebhookLimits.inboxBytesMax, attemptTimeout: Duration = WebhookLimits.attemptTimeout
    ) throws {
        inbox = FactInbox(time: time, bytesMax: inboxBytesMax)
        let client = try CurlMulti(Self.options(endpointCount: endpoints.count, attemptTimeout: attemptTimeout))
        dispatch = WebhookDispatch(endpoints, inbox: inbox, store: store, client: client, time: time, logger: logger)
        self.time = time
        kinds = Dictionary(grouping: endpoints, by: \.app).mapValues { endpoints in
            endpoints.reduce(into: ChannelFact.Kinds()) { $0.formUnion($1.kinds) }.withCounterparts
        }
    }

    /// One client for all endpoints: room for a request to each of them, and nothing that one of them can do to it.
    private static func options(endpointCount: Int, attemptTimeout: Duration) -> CurlOptions {
        var options = CurlOptions(name: "webhooks")
        options.clearText = .anywhere
        // Each endpoint has one request under way, so none of them ever waits for another's.
        options.inFlightMax = max(1, endpointCount)
        options.inFlightMaxHTTP1 = options.inFlightMax
        options.queueMax = options.inFlightMax
        options.narrowsWhenThrottled = false
        options.waitsForMultiplexing = false
        options.connectionsPerHostMax = 0
        options.connectionsCachedMax = min(options.inFlightMax, connectionsCachedMax)
        options.connectTimeout = attemptTimeout
        options.totalTimeout = attemptTimeout
        // Renewing waits until no call is under way; a black hole would make the others wait with it. The kernel ends dead
        // connections by itself.
        options.timeoutsBeforeRenewal = .max
        options.tcpUserTimeout = attemptTimeout
        options.connectionIdleMax = connectionIdleMax
        options.answerHeaders = []
        options.answerBodyBytesMax = 0
        return options
    }

    private static let connectionsCachedMax = 64
    /// Web servers commonly close idle connections after a minute; one that is closed under a request costs an attempt.
    private static let connectionIdleMax = Duration.seconds(30)

    /// Takes up what an earlier process left in the store. Before the first connection comes in.
    package func resume() async throws { try await dispatch.resume() }

    /// Takes facts, in the order in which they happened. From any thread; never waits for more than a short lock.
    package func report(_ facts: [ChannelFact]) {
        let wanted = facts.filter { kinds[$0.app]?.contains($0.event.kind) == true && $0.channel.kind != .serverToUser }
        guard !wanted.isEmpty, inbox.add(wanted) else { return }
        Task { await dispatch.turn() }
    }

    /// Takes no more facts, makes batches of all that waits and stores them, and delivers for at most `grace`; the rest is
    /// taken up at the next start. Once.
    package func stop(grace: Duration = .seconds(1)) async {
        inbox.close()
        let (seconds, attoseconds) = grace.components
        await dispatch.finish(
            deadline: time.monotonicNanoseconds + UInt64(max(0, seconds)) * 1_000_000_000
                + UInt64(max(0, attoseconds)) / 1_000_000_000)
    }

    /// What has happened so far, for metrics.
    package var counters: WebhookCounters { get async { await dispatch.counters } }

    /// What waits for each endpoint, in the order of the configuration, for metrics.
    package var queues: [WebhookQueueFigures] { get async { await dispatch.queues } }
}

/// What waits for one endpoint. Its address is not told: it may hold a secret.
package struct WebhookQueueFigures: Sendable, Equatable {
    package var app: String
    package var batches = 0
    package var bytes = 0
}

extension WebhookDispatch {
    var queues: [WebhookQueueFigures] {
        lanes.map { WebhookQueueFigures(app: $0.endpoint.appID, batches: $0.queue.count, bytes: $0.queue.bytes) }
    }
}

/// Plain numbers about all webhooks since the start.
package struct WebhookCounters: Sendable, Equatable {
    package var batchesDelivered = 0
    /// Not delivered within five minutes.
    package var batchesExpired = 0
    /// Gone because an endpoint's queue was full.
    package var batchesDropped = 0
    package var attempts = 0
    package var attemptsFailed = 0
    /// Gone because they came in faster than they could be looked at.
    package var factsDropped = 0

    package init() {}
}
