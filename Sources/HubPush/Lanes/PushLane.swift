internal import HubCore
package import HubDelivery
internal import HubHTTPClient
internal import Logging

/// A gateway that owns threads and connections.
package protocol ClosablePushGateway: PushGateway {
    /// Gives outstanding pushes `grace` to end, completes all others as retries, and joins the threads. Idempotent.
    func shutdown(grace: Duration)
}

/// The way to one gateway with one credential and environment: its HTTP client, and the admission of pushes. Any thread.
///
/// `LaneAdmission` decides; this is the one place that locks it.
final class PushLane: Sendable {
    /// Traits that differ between gateways.
    struct Traits {
        let provider: PushProvider
        /// Name in alarms and metrics: gateway, environment and ids; no secret.
        let title: String
        /// The quota shared by all lanes of the project; by default the lane's own, without a limit.
        var quota = Guarded(LaneRate(perMinute: nil))
        /// Whether the gateway has a quota for each device.
        var hasDeviceBuckets = false
        /// Share for unproven tokens.
        var unproven = Quarantine.Share.apns
    }

    let multi: CurlMulti
    /// Scheme, host and port; no trailing slash.
    let baseURL: String
    /// Name in alarms and metrics: gateway, environment and ids; no secret.
    let title: String
    let provider: PushProvider
    /// Name in log lines.
    private let name: String
    private let time: any TimeSource
    private let logger: Logger
    private let reports: PushReports

    private struct State {
        var admission: LaneAdmission
        var hasReportedHTTP1 = false
    }
    private let state: Guarded<State>

    init(
        _ options: CurlOptions, baseURL: String, traits: Traits, time: any TimeSource, logger: Logger, reports: PushReports
    ) throws(PushConfigurationError) {
        do throws(HTTPClientError) {
            multi = try CurlMulti(options)
        } catch {
            throw PushConfigurationError("the push lane \(options.name) cannot start: \(error)")
        }
        self.baseURL = baseURL
        self.time = time
        self.logger = logger
        self.reports = reports
        title = traits.title
        provider = traits.provider
        name = options.name
        let admission = LaneAdmission(quota: traits.quota, hasDeviceBuckets: traits.hasDeviceBuckets, unproven: traits.unproven)
        state = Guarded(State(admission: admission))
    }

    // MARK: Asking

    /// - Parameter topic: stop of the app's topic; nil: open.
    func room(isUnproven: Bool, topic: LaneStop? = nil) -> PushRoom {
        let window = multi.counters.window
        return state.withLock(at: time) { $0.admission.room(isUnproven: isUnproven, topic: topic, window: window, now: $1) }
    }

    /// - Parameter topic: stop of the app's topic; nil: open.
    func admit(_ candidates: [PushCandidate], topic: LaneStop? = nil) -> [PushAdmission] {
        let window = multi.counters.window
        return state.withLock(at: time) { $0.admission.admit(candidates, topic: topic, window: window, now: $1) }
    }

    /// Nil if a push may go out; otherwise its outcome without sending. For pushes sent without admission, too.
    func refusal() -> PushOutcome? { state.withLock(at: time) { $0.admission.gate.refusal(now: $1) } }

    // MARK: What becomes of pushes

    /// Notes a push before its submission.
    /// - Returns: whether it counts as unproven; pass this to `left`.
    func entered(_ target: PushTarget) -> Bool { state.withLock { $0.admission.entered(target) } }

    /// Notes the end of an entered push. Call once per `entered`.
    /// - Parameter isBad: whether the gateway called its token bad; nil: not mentioned.
    func left(wasUnproven: Bool, isBad: Bool? = nil) { state.withLock { $0.admission.left(wasUnproven: wasUnproven, isBad: isBad) } }

    /// Applies an outcome to the lane.
    /// - Parameter sentAt: when it was handed over, in nanoseconds of the monotonic clock; nil: just now.
    func note(_ outcome: PushOutcome, _ target: PushTarget, sentAt: UInt64? = nil) {
        let (turn, isReopened) = state.withLock(at: time) { state, now in
            let isAccepted = if case .accepted = outcome { true } else { false }
            return (state.admission.note(outcome, target, sentAt: sentAt, now: now), isAccepted && state.admission.gate.accepted())
        }
        tell(turn, outcome.reason ?? "")
        if isReopened { logger.info("push lane works again", metadata: ["push.lane": .string(name)]) }
    }

    /// Notes that the lane lacks something that every push needs.
    func noteFailed(_ reason: String) { tell(state.withLock(at: time) { $0.admission.failed(now: $1) }, reason) }

    private func tell(_ turn: LaneAdmission.Turn?, _ reason: String) {
        switch turn {
        case .outage:
            logger.info("push lane waits for the end of an outage", metadata: ["push.lane": .string(name), "push.reason": .string(reason)])
            let alarm: PushAlarm =
                switch provider {
                case .apns: .apnsOutage
                case .fcm: .fcmOutage
                }
            reports.raise(
                alarm, lane: title,
                "\(LaneBreaker.failuresMax) pushes in a row failed, the last one with \(reason): the others wait while single ones are tried"
            )
        case .recovered: logger.info("push lane works again", metadata: ["push.lane": .string(name)])
        case .slowed:
            logger.info(
                "push lane slows down: the gateway's quota is spent",
                metadata: ["push.lane": .string(name), "push.reason": .string(reason)])
        case nil: break
        }
    }

    /// Numbers for metrics, without the client's counters.
    func admissionFigures() -> LaneCounters {
        state.withLock(at: time) { $0.admission.figures(name: title, provider: provider, now: $1) }
    }

    // MARK: Stopping

    /// Reason why the lane sends nothing; nil while it sends.
    var stoppedReason: String? { state.withLock { $0.admission.gate.reason } }

    func stop(_ reason: String) {
        if state.withLock(at: time, { $0.admission.gate.stop(reason, now: $1) }) {
            logger.info("push lane stopped", metadata: ["push.lane": .string(name), "push.reason": .string(reason)])
        }
    }

    /// Logs once that a proxy spoils multiplexing, as an HTTP/1 answer reveals.
    func noteVersion(_ version: HTTPAnswer.Version) {
        guard version < .http2 else { return }
        let isFirst = state.withLock { state in
            defer { state.hasReportedHTTP1 = true }
            return !state.hasReportedHTTP1
        }
        if isFirst { logger.warning("push gateway answered without HTTP/2", metadata: ["push.lane": .string(name)]) }
    }

    /// Lifetime of a lane's connections: six to twelve hours, different per lane, so that lanes do not reconnect together.
    static func connectionLifetime() -> Duration { .seconds(Int.random(in: 6 * 3600...12 * 3600)) }
}

extension PushOutcome {
    /// Word for logs and metrics.
    package var name: String {
        switch self {
        case .accepted: "accepted"
        case .retry: "retry"
        case .dead: "dead"
        case .rejected: "rejected"
        case .skippedUnconfigured: "skipped_unconfigured"
        }
    }

    /// Reason for every outcome but an accepted push.
    package var reason: String? {
        switch self {
        case .accepted, .skippedUnconfigured: nil
        case .retry(_, let reason), .dead(let reason, _, _), .rejected(let reason): reason
        }
    }
}

/// Loggable parts of a push: ids and the outcome, never a token, a text or data.
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
