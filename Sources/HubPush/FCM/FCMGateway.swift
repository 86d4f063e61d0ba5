package import HubCore
package import HubDelivery
package import HubHTTPClient
package import Logging

/// Sends to FCM HTTP v1: one lane for messages, and a small client for access tokens, which must not queue after messages.
package final class FCMGateway: ClosablePushGateway {
    static let host = "https://fcm.googleapis.com"
    static let inFlightMax = 200
    static let connectionsMax = 4
    /// Google asks for at least ten seconds.
    static let totalTimeout = Duration.seconds(15)

    private let lane: PushLane
    private let tokenClient: CurlMulti
    private let accessToken: FCMAccessToken
    private let url: String
    private let payloads = SplicedPayloads()
    private let time: any TimeSource
    private let logger: Logger
    private let reports: PushReports
    private let tokens: DeadTokenWatch

    private struct Memory {
        var foreign = ForeignTokens()
        var shapes = AcceptedShapes()
    }
    private let memory = Guarded(Memory())

    static let noneAccepted =
        "no token was accepted since the start, and several are called dead: all are kept; check that the apps and the service account are of one Firebase project"
    static let tooManyUnregistered =
        "more than \(TokenJudge.Rules.fcm.percentMax) % of the tokens are called dead: all are kept; check that the apps and the service account are of one Firebase project"

    /// Starts two threads; connections open with the first push.
    /// - Throws: if the HTTP client cannot start.
    package convenience init(
        _ configuration: FCMConfiguration, time: any TimeSource, logger: Logger, reports: PushReports? = nil
    ) throws(PushConfigurationError) {
        let quota = Guarded(LaneRate(perMinute: configuration.messagesPerMinute))
        try self.init(configuration, quota: quota, time: time, logger: logger, reports: reports)
    }

    /// - Parameter quota: the project's, shared with its other gateways.
    init(
        _ configuration: FCMConfiguration, quota: Guarded<LaneRate>, time: any TimeSource, logger: Logger, reports: PushReports?
    ) throws(PushConfigurationError) {
        let reports = reports ?? PushReports(time: time)
        let title = "fcm project \(configuration.account.projectID)"
        var options = CurlOptions(name: "fcm")
        options.inFlightMax = Self.inFlightMax
        options.inFlightMaxHTTP1 = Self.connectionsMax
        options.connectionsPerHostMax = Self.connectionsMax
        options.totalTimeout = Self.totalTimeout
        options.connectionLifetimeMax = PushLane.connectionLifetime()
        options.caFile = configuration.caFile
        let traits = PushLane.Traits(provider: .fcm, title: title, quota: quota, hasDeviceBuckets: true, unproven: .fcm)
        lane = try PushLane(
            options, baseURL: configuration.url ?? Self.host, traits: traits, time: time, logger: logger, reports: reports)
        url = lane.baseURL + "/v1/projects/\(configuration.account.projectID)/messages:send"

        var tokenOptions = CurlOptions(name: "fcm-token")
        tokenOptions.inFlightMax = 1
        tokenOptions.queueMax = 16
        tokenOptions.caFile = configuration.caFile
        let tokenClient: CurlMulti
        do throws(HTTPClientError) {
            tokenClient = try CurlMulti(tokenOptions)
        } catch {
            throw PushConfigurationError("the client for FCM's access tokens cannot start: \(error)")
        }
        self.tokenClient = tokenClient
        accessToken = FCMAccessToken(account: configuration.account, time: time) { call, completion in
            tokenClient.submit(call, completion: completion)
        }
        self.time = time
        self.logger = logger
        self.reports = reports
        tokens = DeadTokenWatch(.fcm, provider: .fcm, time: time, reports: reports) {
            reports.raise(.fcmUnregistered, lane: title, Self.tooManyUnregistered)
        }
    }

    package func send(_ message: PushMessage, to target: PushTarget, completion: @escaping @Sendable (PushOutcome) -> Void) {
        send(message, to: target, departs: { true }, completion: completion)
    }

    package func send(
        _ message: PushMessage, to target: PushTarget, departs: @escaping @Sendable () -> Bool,
        completion: @escaping @Sendable (PushOutcome) -> Void
    ) {
        let log = PushLog(message, target)
        // Asynchronous, because the caller may hold locks.
        let later: @Sendable (PushOutcome) -> Void = { [logger] outcome in
            Task {
                logger.debug("push", metadata: log.metadata(outcome))
                completion(outcome)
            }
        }
        if let outcome = lane.refusal() { return later(outcome) }
        guard !target.token.isEmpty else { return later(.dead(reason: "the device token is empty", since: nil)) }
        let monotonic = time.monotonicNanoseconds
        if memory.withLock({ $0.foreign.isMarked(target.token, now: monotonic) }) {
            return later(.rejected(reason: "SENDER_ID_MISMATCH: not asked again: the token belongs to another Firebase project"))
        }
        do throws(PayloadFault) {
            let payload = try payloads.fcm(message, target: target, now: time.wallMilliseconds)
            let request = Request(
                body: payload.body, target: target, wasUnproven: lane.entered(target), shape: Self.shape(message, target),
                sentAt: monotonic,
                log: log, departs: departs, completion: completion)
            submit(request, isResend: false)
        } catch {
            later(.rejected(reason: error.reason))
        }
    }

    package func room(on route: PushRoute) -> PushRoom { lane.room(isUnproven: route.isUnproven) }

    package func admit(_ candidates: [PushCandidate]) -> [PushAdmission] { lane.admit(candidates) }

    /// Key for notifications with the same members: one event and kind on one platform.
    private static func shape(_ message: PushMessage, _ target: PushTarget) -> Int {
        var hasher = Hasher()
        hasher.combine(message.event)
        hasher.combine(message.kind)
        hasher.combine(target.platform)
        return hasher.finalize()
    }

    package func shutdown(grace: Duration) {
        // Sends that wait for a token reach the lane before it closes.
        tokenClient.shutdown(grace: grace)
        lane.multi.shutdown(grace: grace)
    }

    var figures: LaneCounters { lane.figures }

    /// The transport's numbers for metrics.
    package var counters: CurlCounters { lane.multi.counters }

    /// Reason why the lane sends nothing; nil while it sends.
    package var stoppedReason: String? { lane.stoppedReason }

    /// Access-token requests made so far.
    package var tokenRequests: Int { accessToken.requests }
}

// MARK: One request

extension FCMGateway {
    private struct Request: Sendable {
        let body: [UInt8]
        let target: PushTarget
        /// Sent in the share for unproven tokens.
        let wasUnproven: Bool
        let shape: Int
        /// Nanoseconds of the monotonic clock.
        let sentAt: UInt64
        let log: PushLog
        let departs: @Sendable () -> Bool
        let completion: @Sendable (PushOutcome) -> Void
    }

    private func call(_ body: [UInt8], token: String, departs: (@Sendable () -> Bool)? = nil) -> HTTPCall {
        HTTPCall(
            method: "POST", url: url, headers: [("authorization", "Bearer " + token), ("content-type", "application/json")], body: body,
            departs: departs)
    }

    private func submit(_ request: Request, isResend: Bool) {
        accessToken.withToken { [self] token in
            switch token {
            case .success(let token):
                lane.multi.submit(call(request.body, token: token, departs: request.departs)) { [self] result in
                    answered(request, token: token, isResend: isResend, result)
                }
            case .failure(let fault):
                // Asynchronous: without a wait for the token this may still be the caller's thread.
                Task { [self] in
                    if fault.isOutage { lane.noteFailed(fault.reason) }
                    finish(request, verdict(fault))
                }
            }
        }
    }

    private func verdict(_ fault: AccessTokenFault) -> GatewayVerdict {
        fault.isRetryable
            ? .retry(.lane, fault.reason, after: fault.after)
            : .stopped("\(fault.reason): check the service account and the clock", .stopLane, .fcmAccountRefused)
    }

    private func answered(
        _ request: Request, token: String, isResend: Bool, _ result: Result<HTTPAnswer, HTTPClientError>
    ) {
        var verdict: GatewayVerdict
        var isCalledBad = false
        switch result {
        case .failure(let error): verdict = GatewayVerdict(error)
        case .success(let answer):
            lane.noteVersion(answer.version)
            verdict = FCMOutcome.verdict(answer, now: time.wallMilliseconds)
        }
        switch verdict.action {
        case .replaceAccessToken:
            accessToken.invalidate(token)
            if !isResend { return submit(request, isResend: true) }
            // A fresh token was refused too, so another one would not help.
            lane.stop(verdict.outcome.reason ?? "")
            verdict = verdict.raising(.fcmUnauthenticated)
        case .judgeToken:
            isCalledBad = true
            verdict = judged(verdict, request)
        case .judgeTokenOfKnownShape:
            if memory.withLock({ $0.shapes.contains(request.shape) }) {
                isCalledBad = true
                verdict = judged(verdict, request)
            } else {
                verdict = .rejected(
                    "INVALID_ARGUMENT: not a valid registration token, or a wrong payload: nobody has accepted this event yet")
            }
        case .markForeign:
            isCalledBad = true
            let areMany = memory.withLock(at: time) { $0.foreign.mark(request.target.token, now: $1) }
            if areMany { verdict = verdict.raising(.fcmSenderMismatch) }
        default: break
        }
        finish(request, verdict, isCalledBad: isCalledBad)
    }

    /// Keeps tokens alive if so many are called dead that the project must be wrong. Topics never die.
    private func judged(_ verdict: GatewayVerdict, _ request: Request) -> GatewayVerdict {
        guard request.target.form.isOfDevice else {
            return .rejected(verdict.outcome.reason ?? PushReason.other)
        }
        switch tokens.bad(request.target.token, app: request.target.app, isProven: !request.wasUnproven) {
        case .open: return verdict
        case .tooMany: return .rejected("\(PushReason.word(of: verdict.outcome)): \(Self.tooManyUnregistered)")
        case .doubtful: return .rejected("\(PushReason.word(of: verdict.outcome)): \(Self.noneAccepted)").raising(.fcmUnregistered)
        }
    }

    private func finish(_ request: Request, _ verdict: GatewayVerdict, isCalledBad: Bool = false) {
        switch verdict.action {
        case .stopLane: lane.stop(verdict.outcome.reason ?? "")
        case .newConnection: lane.multi.renewConnections()
        default: break
        }
        let isAccepted = if case .accepted = verdict.outcome { true } else { false }
        lane.left(wasUnproven: request.wasUnproven, isBad: isCalledBad ? true : isAccepted ? false : nil)
        lane.note(verdict.outcome, request.target, sentAt: request.sentAt)
        if isAccepted {
            // A topic is accepted in any project.
            if request.target.form.isOfDevice { tokens.good(request.target.token, isProven: !request.wasUnproven) }
            memory.withLock { $0.shapes.note(request.shape) }
        }
        if let alarm = verdict.alarm { reports.raise(alarm, lane: lane.title, verdict.outcome.reason ?? "") }
        logger.debug("push", metadata: request.log.metadata(verdict.outcome))
        request.completion(verdict.outcome)
    }

    /// Decides about held tokens after the passage of time.
    func sweep() { tokens.sweep() }
}

// MARK: Asking whether the credentials work

extension FCMGateway {
    /// Validates a message to a topic without subscribers, without sending it. This checks account, role, API and project.
    /// No gate counts it.
    package func checkCredentials(completion: @escaping @Sendable (CredentialCheck) -> Void) {
        let asked = "a message that is only checked, not sent (\(lane.title))"
        let body = Array(#"{"validate_only":true,"message":{"topic":"tandem-check","data":{"check":"live"}}}"#.utf8)
        let now = time.wallMilliseconds
        accessToken.withToken { [self] token in
            switch token {
            case .failure(let fault):
                completion(
                    CredentialCheck(
                        fault.isRetryable ? .failed : .refused, asked: asked, answered: fault.reason,
                        advice: fault.isRetryable
                            ? "see that this machine reaches the service account's token_uri"
                            : "check the service account's key (revoked?) and this machine's clock (NTP)"))
            case .success(let token):
                lane.multi.submit(call(body, token: token)) { [self] result in
                    switch result {
                    case .failure(let error): completion(.unreachable(asked: asked, error, host: lane.baseURL))
                    case .success(let answer): completion(.fcm(asked: asked, FCMOutcome.verdict(answer, now: now).outcome))
                    }
                }
            }
        }
    }
}
