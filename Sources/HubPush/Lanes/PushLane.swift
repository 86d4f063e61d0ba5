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

/// One multi handle for one provider, credential and environment, with what decides when pushes may go out in front of it.
final class PushLane: Sendable {
    /// What a lane is paced by, and whom it tells of an outage.
    struct Habits {
        /// The gateway's quota for the project, of all lanes of that project; its own and none where nothing is said.
        var quota = LaneQuota(perMinute: nil)
        /// Whether the gateway has a quota for each device.
        var hasDeviceBuckets = false
        /// The share of tokens that nobody has seen work.
        var unproven = Quarantine.Share.apns
        /// Called with what to tell when an outage begins.
        var outage: @Sendable (_ detail: String) -> Void = { _ in }
    }

    let multi: CurlMulti
    /// Scheme, host and port; no slash at the end.
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

    /// A push is about to be submitted.
    /// - Returns: whether it counts as unproven: for `left`.
    func entered(_ target: PushTarget) -> Bool { state.withLock { $0.pace.entered(target) } }

    /// A push that had entered has ended.
    /// - Parameter isBad: whether the gateway called its token bad; nil: it said nothing about it.
    func left(wasUnproven: Bool, isBad: Bool? = nil) { state.withLock { $0.pace.left(wasUnproven: wasUnproven, isBad: isBad) } }

    /// Draws from the answer to a push what it says about the lane.
    /// - Parameter sentAt: when it was handed over, in nanoseconds of the monotonic clock; nil: a moment ago.
    func note(_ outcome: PushOutcome, _ target: PushTarget, sentAt: UInt64? = nil) {
        let now = time.monotonicNanoseconds
        let (turn, isReopened) = state.withLock { state in
            let isAccepted = if case .accepted = outcome { true } else { false }
            return (state.pace.note(outcome, target, sentAt: sentAt, now: now), isAccepted && state.pace.gate.accepted())
        }
        tell(turn, outcome.reason ?? "")
        if isReopened { logger.info("push lane works again", metadata: ["push.lane": .string(name)]) }
    }

    /// The lane could not send, for want of what it needs for every push.
    func noteFailed(_ reason: String) {
        let now = time.monotonicNanoseconds
        tell(state.withLock { $0.pace.failed(now: now) }, reason)
    }

    private func tell(_ turn: LanePace.Turn?, _ reason: String) {
        switch turn {
        case .outage:
            logger.info("push lane waits for the end of an outage", metadata: ["push.lane": .string(name), "push.reason": .string(reason)])
            outage("\(LaneBreaker.failuresMax) pushes in a row failed, the last one with \(reason): the others wait while single ones are tried")
        case .recovered: logger.info("push lane works again", metadata: ["push.lane": .string(name)])
        case .slowed:
            logger.info(
                "push lane slows down: the gateway's quota is spent", metadata: ["push.lane": .string(name), "push.reason": .string(reason)])
        case nil: break
        }
    }

    /// For metrics; without what the client has counted.
    func pace(name: String, provider: PushProvider) -> LaneFigures {
        let now = time.monotonicNanoseconds
        return state.withLock { $0.pace.figures(name: name, provider: provider, now: now) }
    }

    // MARK: Gate

    /// Nil when a push may go out; otherwise the outcome it gets instead.
    func refusal() -> PushOutcome? {
        let now = time.monotonicNanoseconds
        return state.withLock { $0.pace.gate.admit(now: now) }.map { stopped in
            .retry(after: stopped.wait, reason: RetryCause.lane.reason("stopped: \(stopped.reason)"))
        }
    }

    /// Why the lane sends nothing at present; nil while it does.
    var stoppedReason: String? { state.withLock { $0.pace.gate.reason } }

    func stop(_ reason: String) {
        let now = time.monotonicNanoseconds
        if state.withLock({ $0.pace.gate.stop(reason, now: now) }) {
            logger.info("push lane stopped", metadata: ["push.lane": .string(name), "push.reason": .string(reason)])
        }
    }

    /// An HTTP/1 answer means that something in between spoils multiplexing; said once.
    func noteVersion(_ version: HTTPAnswer.Version) {
        guard version < .http2 else { return }
        let isFirst = state.withLock { state in
            defer { state.hasReportedHTTP1 = true }
            return !state.hasReportedHTTP1
        }
        if isFirst { logger.warning("push gateway answered without HTTP/2", metadata: ["push.lane": .string(name)]) }
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
