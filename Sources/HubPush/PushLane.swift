package import HubDelivery
internal import HubCore
internal import HubHTTPClient
internal import Logging
internal import Synchronization

/// A gateway that owns threads and connections.
package protocol ClosablePushGateway: PushGateway {
    /// Gives outstanding pushes `grace` to end, completes the others as retries and joins the threads. Repeatable.
    func shutdown(grace: Duration)
}

/// One multi handle for one provider, credential and environment, with the gate in front of it.
final class PushLane: Sendable {
    let multi: CurlMulti
    /// Scheme, host and port; no slash at the end.
    let baseURL: String
    private let name: String
    private let time: any TimeSource
    private let logger: Logger

    private struct State {
        var gate = LaneGate()
        var hasReportedHTTP1 = false
    }
    private let state = Mutex(State())

    init(_ options: CurlOptions, baseURL: String, time: any TimeSource, logger: Logger) throws(PushConfigurationError) {
        do throws(HTTPClientError) {
            multi = try CurlMulti(options)
        } catch {
            throw PushConfigurationError("the push lane \(options.name) cannot start: \(error)")
        }
        self.baseURL = baseURL
        self.time = time
        self.logger = logger
        name = options.name
    }

    /// Nil when a push may go out; otherwise the outcome it gets instead.
    func refusal() -> PushOutcome? {
        let now = time.monotonicNanoseconds
        return state.withLock { $0.gate.admit(now: now) }.map { stopped in
            .retry(after: stopped.wait, reason: RetryCause.lane.reason("stopped: \(stopped.reason)"))
        }
    }

    /// Why the lane sends nothing at present; nil while it does.
    var stoppedReason: String? { state.withLock { $0.gate.reason } }

    func stop(_ reason: String) {
        let now = time.monotonicNanoseconds
        if state.withLock({ $0.gate.stop(reason, now: now) }) {
            logger.info("push lane stopped", metadata: ["push.lane": .string(name), "push.reason": .string(reason)])
        }
    }

    func noteAccepted() {
        if state.withLock({ $0.gate.accepted() }) {
            logger.info("push lane works again", metadata: ["push.lane": .string(name)])
        }
    }

    /// An HTTP/1 answer means that something in between spoils multiplexing; said once.
    func noteVersion(_ version: HTTPAnswer.Version) {
        guard version < .http2 else { return }
        let isFirst = state.withLock { state in
            defer { state.hasReportedHTTP1 = true }
            return !state.hasReportedHTTP1
        }
        if isFirst { logger.info("push gateway answered without HTTP/2", metadata: ["push.lane": .string(name)]) }
    }

    /// Connections live six to twelve hours, each lane its own, so that they do not all reconnect together.
    static func connectionLifetime() -> Duration { .seconds(Int.random(in: 6 * 3600...12 * 3600)) }
}

extension PushOutcome {
    /// A word for logs and metrics.
    package var name: String {
        switch self {
        case .accepted: "accepted"
        case .retry: "retry"
        case .dead: "dead"
        case .rejected: "rejected"
        case .skippedUnconfigured: "skipped_unconfigured"
        }
    }

    /// Why, for everything but an accepted push.
    package var reason: String? {
        switch self {
        case .accepted, .skippedUnconfigured: nil
        case .retry(_, let reason), .dead(let reason, _, _), .rejected(let reason): reason
        }
    }
}

/// What may be logged about a push: ids and the outcome, never a token, a text or data.
struct PushLog: Sendable {
    let nid: String
    let event: String
    let provider: PushProvider

    init(_ message: PushMessage, _ target: PushTarget) {
        nid = message.nid
        event = message.event
        provider = target.provider
    }

    func metadata(_ outcome: PushOutcome) -> Logger.Metadata {
        var metadata: Logger.Metadata = [
            "push.nid": .string(nid), "push.event": .string(event), "push.provider": .string(provider.rawValue),
            "push.outcome": .string(outcome.name),
        ]
        if let reason = outcome.reason { metadata["push.reason"] = .string(reason) }
        return metadata
    }
}
