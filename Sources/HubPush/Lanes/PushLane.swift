internal import HubCore
package import HubDelivery
internal import HubHTTPClient
internal import Logging
internal import Synchronization

/// A gateway that owns threads and connections.
package protocol ClosablePushGateway: PushGateway {
    /// Gives outstanding pushes `grace` to end, completes all others as retries, and joins the threads. Idempotent.
    func shutdown(grace: Duration)
}

/// One multi handle for one provider, credential and environment, with its admission control.
final class PushLane: Sendable {
    /// Pace of a lane, and its outage handler.
    struct Habits {
        /// The quota shared by all lanes of the project; by default the lane's own, without a limit.
        var quota = LaneQuota(perMinute: nil)
        /// Whether the gateway has a quota for each device.
        var hasDeviceBuckets = false
        /// Share for unproven tokens.
        var unproven = Quarantine.Share.apns
        /// Called with details at the beginning of an outage.
        var outage: @Sendable (_ detail: String) -> Void = { _ in }
    }

    let multi: CurlMulti
    /// Scheme, host and port; no trailing slash.
    let baseURL: String
    private let name: String
    private let time: any TimeSource
    private let logger: Logger

    private struct State {
        var pace: LanePace
        var hasReportedHTTP1 = false
    }
    private let state: Mutex<State>
    private let outage: @Sendable (_ detail: String) -> Void

    init(
        _ options: CurlOptions, baseURL: String, habits: Habits = Habits(), time: any TimeSource, logger: Logger
    ) throws(PushConfigurationError) {
        do throws(HTTPClientError) {
            multi = try CurlMulti(options)
        } catch {
            throw PushConfigurationError("the push lane \(options.name) cannot start: \(error)")
        }
        self.baseURL = baseURL
        self.time = time
        self.logger = logger
        name = options.name
        outage = habits.outage
        state = Mutex(State(pace: LanePace(quota: habits.quota, hasDeviceBuckets: habits.hasDeviceBuckets, unproven: habits.unproven)))
    }

    // MARK: Pace

    func room(isUnproven: Bool) -> PushRoom {
        let (window, now) = (multi.counters.window, time.monotonicNanoseconds)
        return state.withLock { $0.pace.room(isUnproven: isUnproven, window: window, now: now) }
    }

    func admit(_ candidates: [PushCandidate]) -> [PushAdmission] {
        let (window, now) = (multi.counters.window, time.monotonicNanoseconds)
        return state.withLock { $0.pace.admit(candidates, window: window, now: now) }
    }

    /// Notes a push before its submission.
    /// - Returns: whether it counts as unproven; pass this to `left`.
    func entered(_ target: PushTarget) -> Bool { state.withLock { $0.pace.entered(target) } }

    /// Notes the end of an entered push.
    /// - Parameter isBad: whether the gateway called its token bad; nil: not mentioned.
    func left(wasUnproven: Bool, isBad: Bool? = nil) { state.withLock { $0.pace.left(wasUnproven: wasUnproven, isBad: isBad) } }

    /// Applies an outcome to the lane.
    /// - Parameter sentAt: when it was handed over, in nanoseconds of the monotonic clock; nil: just now.
    func note(_ outcome: PushOutcome, _ target: PushTarget, sentAt: UInt64? = nil) {
        let now = time.monotonicNanoseconds
        let (turn, isReopened) = state.withLock { state in
            let isAccepted = if case .accepted = outcome { true } else { false }
            return (state.pace.note(outcome, target, sentAt: sentAt, now: now), isAccepted && state.pace.gate.accepted())
        }
        tell(turn, outcome.reason ?? "")
        if isReopened { logger.info("push lane works again", metadata: ["push.lane": .string(name)]) }
    }

    /// Notes that the lane lacks something that every push needs.
    func noteFailed(_ reason: String) {
        let now = time.monotonicNanoseconds
        tell(state.withLock { $0.pace.failed(now: now) }, reason)
    }

    private func tell(_ turn: LanePace.Turn?, _ reason: String) {
        switch turn {
        case .outage:
            logger.info("push lane waits for the end of an outage", metadata: ["push.lane": .string(name), "push.reason": .string(reason)])
            outage(
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
    func pace(name: String, provider: PushProvider) -> LaneCounters {
        let now = time.monotonicNanoseconds
        return state.withLock { $0.pace.figures(name: name, provider: provider, now: now) }
    }

    // MARK: Gate

    /// Nil if a push may go out; otherwise its outcome without sending.
    func refusal() -> PushOutcome? {
        let now = time.monotonicNanoseconds
        return state.withLock { $0.pace.gate.admit(now: now) }.map { stopped in
            .retry(after: stopped.wait, reason: RetryCause.lane.reason("stopped: \(stopped.reason)"))
        }
    }

    /// Reason why the lane sends nothing; nil while it sends.
    var stoppedReason: String? { state.withLock { $0.pace.gate.reason } }

    func stop(_ reason: String) {
        let now = time.monotonicNanoseconds
        if state.withLock({ $0.pace.gate.stop(reason, now: now) }) {
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
