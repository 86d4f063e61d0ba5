package import HubCore
package import HubDelivery
internal import HubHTTPClient
package import Logging
package import PusherProtocol

/// Tells the apps' own servers what happens to their channels (docs/protocol.md, 6).
///
/// Facts come in from the loops, which never wait; everything else happens in tasks and on the HTTP client's thread. Every
/// endpoint has a queue of its own and one request under way, so a slow or dead one costs nothing but its own queue.
package final class WebhookService: Sendable {
    private let inbox: FactInbox
    private let dispatch: WebhookDispatch
    private let time: any TimeSource
    /// Kinds that some endpoint of each app needs, by the app's index.
    private let kinds: [Int: ChannelFact.Kinds]

    /// Starts the HTTP client's thread. Nothing is sent before `resume` or `report`.
    /// - Parameters:
    ///   - inboxBytesMax: approximate size of the facts that may wait; if exceeded, the newest are dropped.
    ///   - attemptTimeout: from connecting to the end of the answer.
    ///   - owns: whether this node sends the app's webhooks, asked ten times a second from any thread; nil on a single node.
    /// - Throws: if the HTTP client cannot start, with the cause.
    package init(
        endpoints: [WebhookEndpoint], store: any WebhookStore, time: any TimeSource, logger: Logger,
        inboxBytesMax: Int = WebhookLimits.inboxBytesMax, attemptTimeout: Duration = WebhookLimits.attemptTimeout,
        owns: (@Sendable (_ app: String) -> Bool)? = nil
    ) throws {
        inbox = FactInbox(time: time, bytesMax: inboxBytesMax)
        let client = try CurlMulti(Self.options(endpointCount: endpoints.count, attemptTimeout: attemptTimeout))
        dispatch = WebhookDispatch(
            endpoints, inbox: inbox, store: store, client: client, time: time, logger: logger, attemptTimeout: attemptTimeout, owns: owns)
        self.time = time
        kinds = Dictionary(grouping: endpoints, by: \.app).mapValues { endpoints in
            endpoints.reduce(into: ChannelFact.Kinds()) { $0.formUnion($1.kinds) }.withCounterparts
        }
    }

    /// One client for all endpoints, with room for a request to each, so that no endpoint can slow down another.
    private static func options(endpointCount: Int, attemptTimeout: Duration) -> CurlOptions {
        var options = CurlOptions(name: "webhooks")
        options.clearText = .anywhere
        // Each endpoint has at most one request in flight, so no request waits for another endpoint's.
        options.inFlightMax = max(1, endpointCount)
        options.inFlightMaxHTTP1 = options.inFlightMax
        options.queueMax = options.inFlightMax
        options.narrowsWhenThrottled = false
        options.waitsForMultiplexing = false
        options.connectionsPerHostMax = 0
        options.connectionsCachedMax = min(options.inFlightMax, connectionsCachedMax)
        options.connectTimeout = attemptTimeout
        options.totalTimeout = attemptTimeout
        // Never renews connections after time-outs: renewing waits until no call is in flight, so one dead endpoint would delay the rest.
        // The kernel ends dead connections.
        options.timeoutsBeforeRenewal = .max
        options.tcpUserTimeout = attemptTimeout
        options.connectionIdleMax = connectionIdleMax
        options.answerHeaders = []
        options.answerBodyBytesMax = 0
        return options
    }

    private static let connectionsCachedMax = 64
    /// Shorter than the minute after which web servers commonly close idle connections. A connection that closes during a request costs an
    /// attempt.
    private static let connectionIdleMax = Duration.seconds(30)

    /// Loads the batches that an earlier process left in the store. Call before the first connection is accepted.
    package func resume() async throws { try await dispatch.resume() }

    /// Takes facts in the order of their occurrence. Callable from any thread; waits at most for a short lock.
    package func report(_ facts: [ChannelFact]) {
        let wanted = facts.filter { kinds[$0.app]?.contains($0.event.kind) == true && $0.channel.kind != .serverToUser }
        guard !wanted.isEmpty, inbox.add(wanted) else { return }
        Task { await dispatch.turn() }
    }

    /// Stores what was told, and leaves all apps to the other nodes. Comes before this node gives up what it owns; takes a second at most.
    package func leave() async { await dispatch.leave() }

    /// Refuses further facts, makes and stores batches of all waiting ones, and delivers for at most `grace`. The next start delivers the
    /// rest. Call once.
    package func stop(grace: Duration = .seconds(1)) async {
        inbox.close()
        let (seconds, attoseconds) = grace.components
        await dispatch.finish(
            deadline: time.monotonicNanoseconds + UInt64(max(0, seconds)) * 1_000_000_000
                + UInt64(max(0, attoseconds)) / 1_000_000_000)
    }

    /// Counters since the start, for metrics.
    package var counters: WebhookCounters { get async { await dispatch.counters } }

    /// The queue of each endpoint, in the order of the configuration, for metrics.
    package var queues: [WebhookQueueCounters] { get async { await dispatch.queues } }
}

/// One endpoint's queue. Leaves out the address, which may hold a secret.
package struct WebhookQueueCounters: Sendable, Equatable {
    /// The app's id.
    package var app: String
    /// Batches that wait or are in flight.
    package var batches = 0
    /// Bytes of their bodies.
    package var bytes = 0
}

extension WebhookDispatch {
    var queues: [WebhookQueueCounters] {
        lanes.map { WebhookQueueCounters(app: $0.endpoint.appID, batches: $0.queue.count, bytes: $0.queue.bytes) }
    }
}

/// Counters of all webhooks since the start.
package struct WebhookCounters: Sendable, Equatable {
    /// Batches answered with 2xx.
    package var batchesDelivered = 0
    /// Batches not delivered within five minutes.
    package var batchesExpired = 0
    /// Batches dropped because an endpoint's queue was full.
    package var batchesDropped = 0
    /// Requests that were begun.
    package var attempts = 0
    /// Requests that ended with another answer, or without one.
    package var attemptsFailed = 0
    /// Facts dropped because the inbox was full.
    package var factsDropped = 0

    /// All zero.
    package init() {}
}
