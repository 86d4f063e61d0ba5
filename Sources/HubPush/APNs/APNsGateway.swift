package import HubCore
internal import HubCrypto
package import HubDelivery
package import HubHTTPClient
package import Logging
internal import Synchronization

/// Sends one app's pushes to APNs via a lane per environment, shared with other apps that have the same key.
///
/// The target's environment alone selects the lane. Hosts are constants, so no outside text can redirect the provider token.
/// One exception: a token that no gateway ever accepted is tried once in the other environment if its own calls it bad.
package final class APNsGateway: ClosablePushGateway {
    /// Twice today's longest tokens; Apple warns against assuming a length.
    static let tokenDigitsMax = 200

    /// This app's way to one environment.
    final class Side: Sendable {
        /// Shared by all apps with the key.
        let lane: PushLane
        let providerToken: APNsProviderToken
        /// Stops this app alone, after mistakes in its topic.
        private let gate = Guarded(LaneGate())
        let tokens: DeadTokenWatch
        /// Lane and topic in alarms.
        let name: String
        private let time: any TimeSource

        init(_ lane: PushLane, providerToken: APNsProviderToken, topic: String, time: any TimeSource, reports: PushReports) {
            let name = "\(lane.title) topic \(topic)"
            self.lane = lane
            self.providerToken = providerToken
            self.name = name
            self.time = time
            tokens = DeadTokenWatch(.apns, provider: .apns, time: time, reports: reports) { [gate] in
                gate.withLock(at: time) { _ = $0.stop(APNsGateway.tooManyBadTokens, now: $1) }
                reports.raise(.apnsBadTokens, lane: name, APNsGateway.tooManyBadTokens)
            }
        }

        func room(isUnproven: Bool) -> PushRoom { lane.room(isUnproven: isUnproven, topic: topicStop) }

        func admit(_ candidates: [PushCandidate]) -> [PushAdmission] { lane.admit(candidates, topic: topicStop) }

        /// Nil if a push may go out; otherwise its outcome without sending. For pushes sent without admission, too.
        func refusal() -> PushOutcome? { gate.withLock(at: time) { $0.refusal(now: $1) } ?? lane.refusal() }

        private var topicStop: LaneStop? { gate.withLock(at: time) { $0.stop(now: $1) } }

        /// Reason why the app's pushes are stopped on this lane; nil while they are sent.
        var stoppedReason: String? { gate.withLock { $0.reason } }

        func stop(_ reason: String) { gate.withLock(at: time) { _ = $0.stop(reason, now: $1) } }

        /// Notes an accepted push, which ends a stop if it was the trial.
        func accepted() {
            if gate.withLock({ $0.accepted() }) { tokens.reset() }
        }
    }

    static let tooManyBadTokens =
        "more than \(TokenJudge.Rules.apns.percentMax) % of the device tokens are called bad: all are kept; check APNS_TOPIC and the devices' environment"

    static let noneAccepted =
        "no device token was accepted since the start, and several are called bad: all are kept; check APNS_TOPIC and the devices' environment"

    private let topic: String
    private let production: Side
    private let sandbox: Side
    private let payloads = SplicedPayloads()
    private let time: any TimeSource
    private let logger: Logger
    private let reports: PushReports
    /// Some token was accepted: key, team and topic are right, and both environments share them.
    private let hasAccepted = Atomic(false)

    /// Starts two threads; connections open with the first push.
    /// - Throws: if the key cannot be used or the HTTP client cannot start.
    package convenience init(
        _ configuration: APNsConfiguration, time: any TimeSource, logger: Logger, reports: PushReports? = nil
    ) throws(PushConfigurationError) {
        let lanes = PushLanes(time: time, logger: logger, reports: reports ?? PushReports(time: time))
        self.init(
            topic: configuration.topic, production: try lanes.side(configuration, .production),
            sandbox: try lanes.side(configuration, .sandbox), time: time, logger: logger, reports: lanes.reports)
    }

    init(topic: String, production: Side, sandbox: Side, time: any TimeSource, logger: Logger, reports: PushReports) {
        self.topic = topic
        self.production = production
        self.sandbox = sandbox
        self.time = time
        self.logger = logger
        self.reports = reports
    }

    func side(_ environment: APNsEnvironment) -> Side {
        switch environment {
        case .production: production
        case .sandbox: sandbox
        }
    }

    package func send(_ message: PushMessage, to target: PushTarget, completion: @escaping @Sendable (PushOutcome) -> Void) {
        send(message, to: target, departs: { true }, completion: completion)
    }

    package func send(
        _ message: PushMessage, to target: PushTarget, departs: @escaping @Sendable () -> Bool,
        completion: @escaping @Sendable (PushOutcome) -> Void
    ) {
        let side = side(target.environment)
        let log = PushLog(message, target)
        let (target, completion) = message.addressed(to: target, completion)
        // Asynchronous, because the caller may hold locks.
        if let outcome = side.refusal() { return Self.later(outcome, log, logger, completion) }
        guard let path = Self.path(target.token) else {
            return Self.later(
                .dead(reason: "not an APNs device token: it is not hexadecimal", since: nil), log, logger, completion)
        }
        do throws(PayloadFault) {
            let payload = try payloads.apns(message, topic: topic, device: target.device, now: time.wallMilliseconds)
            switch try token(of: side) {
            case .token(let token):
                let request = Request(
                    payload: payload, path: path, target: target, environment: target.environment,
                    wasUnproven: side.lane.entered(target), log: log, departs: departs, completion: completion)
                submit(request, token: token, isResend: false)
            case .wait(let wait):
                Self.later(
                    .retry(after: wait, reason: RetryCause.lane.reason("no provider token yet")), log, logger, completion)
            }
        } catch {
            Self.later(.rejected(reason: error.reason), log, logger, completion)
        }
    }

    package func room(on route: PushRoute) -> PushRoom { side(route.environment).room(isUnproven: route.isUnproven) }

    package func admit(_ candidates: [PushCandidate]) -> [PushAdmission] {
        guard let environment = candidates.first?.target.environment else { return [] }
        precondition(candidates.allSatisfy { $0.target.environment == environment }, "a batch for two environments of APNs")
        return side(environment).admit(candidates)
    }

    /// Request path of a device token; nil for other text, which must not become part of a path.
    static func path(_ token: String) -> String? {
        let count = token.utf8.count
        guard count > 0, count <= tokenDigitsMax, count.isMultiple(of: 2) else { return nil }
        var isLowerCase = true
        for digit in token.utf8 {
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"): break
            case UInt8(ascii: "A")...UInt8(ascii: "F"): isLowerCase = false
            default: return nil
            }
        }
        return "/3/device/" + (isLowerCase ? token : token.lowercased())
    }

    private func token(of side: Side) throws(PayloadFault) -> APNsProviderToken.Token {
        do throws(CryptoError) {
            return try side.providerToken.current()
        } catch {
            throw PayloadFault(reason: "the provider token cannot be signed: \(error)")
        }
    }

    private static func later(
        _ outcome: PushOutcome, _ log: PushLog, _ logger: Logger, _ completion: @escaping @Sendable (PushOutcome) -> Void
    ) {
        Task {
            logger.debug("push", metadata: log.metadata(outcome))
            completion(outcome)
        }
    }

    package func shutdown(grace: Duration) {
        production.lane.multi.shutdown(grace: grace)
        sandbox.lane.multi.shutdown(grace: grace)
    }

    /// The transport's numbers for metrics.
    package func counters(_ environment: APNsEnvironment) -> CurlCounters { side(environment).lane.multi.counters }

    /// Reason why the lane sends nothing; nil while it sends.
    package func stoppedReason(_ environment: APNsEnvironment) -> String? {
        let side = side(environment)
        return side.lane.stoppedReason ?? side.stoppedReason
    }
}

// MARK: One request

extension APNsGateway {
    private struct Request: Sendable {
        let payload: APNsPayload
        let path: String
        let target: PushTarget
        /// Environment of the current try: the target's, or the other one on the second try.
        var environment: APNsEnvironment
        /// Sent in the small share for unproven tokens.
        let wasUnproven: Bool
        /// APNs called the token bad in at least one environment.
        var isCalledBad = false
        let log: PushLog
        let departs: @Sendable () -> Bool
        let completion: @Sendable (PushOutcome) -> Void

        var isCrossed: Bool { environment != target.environment }
    }

    private func submit(_ request: Request, token: String, isResend: Bool) {
        let lane = side(request.environment).lane
        var headers = request.payload.common
        headers.reserveCapacity(headers.count + 2)
        headers.append(("apns-id", request.payload.requestID))
        headers.append(("authorization", "bearer " + token))
        let call = HTTPCall(
            method: "POST", url: lane.baseURL + request.path, headers: headers, body: request.payload.body, departs: request.departs)
        lane.multi.submit(call) { [self] result in answered(request, token: token, isResend: isResend, result) }
    }

    private func answered(
        _ request: Request, token: String, isResend: Bool, _ result: Result<HTTPAnswer, HTTPClientError>
    ) {
        var request = request
        let side = side(request.environment)
        let lane = side.lane
        var verdict: GatewayVerdict
        switch result {
        case .failure(let error): verdict = GatewayVerdict(error)
        case .success(let answer):
            lane.noteVersion(answer.version)
            verdict = APNsOutcome.verdict(
                answer, requestID: request.payload.requestID, now: time.wallMilliseconds)
        }
        if verdict.action == .tryOtherEnvironment || verdict.action == .judgeToken { request.isCalledBad = true }
        switch verdict.action {
        case .none, .replaceAccessToken, .judgeTokenOfKnownShape, .markForeign: break
        case .newConnection: lane.multi.renewConnections()
        case .keepOlderProviderToken: side.providerToken.tooManyUpdates()
        case .stopLane: lane.stop(verdict.outcome.reason ?? "")
        case .stopTopic: side.stop(verdict.outcome.reason ?? "")
        case .resendOnNewConnection:
            lane.multi.renewConnections()
            if !isResend { return submit(request, token: token, isResend: true) }
        case .replaceProviderToken:
            switch replacement(for: token, side) {
            case .token(let fresh):
                // APNs keeps refusing on a connection that carried the expired token.
                lane.multi.renewConnections()
                if !isResend { return submit(request, token: fresh, isResend: true) }
            case .wait(let wait):
                verdict = .retry(.lane, "ExpiredProviderToken", after: wait).raising(.apnsProviderTokenExpired)
                // Every further push would be refused too, and refusals slow a connection down.
                lane.stop("ExpiredProviderToken: the provider token is not an hour old; check the clock")
            case nil: verdict = .retry(.lane, "the provider token cannot be signed")
            }
        case .tryOtherEnvironment where !request.target.isProven && !request.isCrossed: return cross(request)
        case .tryOtherEnvironment, .judgeToken: verdict = judged(verdict, request)
        }
        finish(request, verdict)
    }

    /// Tries the other environment for an unproven token that its own environment calls bad.
    private func cross(_ request: Request) {
        var request = request
        request.environment = request.target.environment == .production ? .sandbox : .production
        let side = side(request.environment)
        // Only both environments together can tell that the token is dead.
        let undecided = GatewayVerdict.rejected("BadDeviceToken: the token is kept, because the other environment could not be asked")
        guard side.refusal() == nil else { return finish(request, undecided) }
        do throws(PayloadFault) {
            guard case .token(let token) = try token(of: side) else { return finish(request, undecided) }
            submit(request, token: token, isResend: false)
        } catch {
            finish(request, .rejected(error.reason))
        }
    }

    /// Keeps tokens alive if so many are called bad that the lane must be wrong.
    private func judged(_ verdict: GatewayVerdict, _ request: Request) -> GatewayVerdict {
        let home = side(request.target.environment)
        let word = PushReason.word(of: verdict.outcome)
        switch home.tokens.bad(request.target.token, app: request.target.app, isProven: !request.wasUnproven) {
        case .open: return verdict
        case .tooMany where request.wasUnproven: return .retry(.lane, "\(word): \(Self.tooManyBadTokens)")
        case .tooMany:
            home.stop(Self.tooManyBadTokens)
            return .rejected("\(word): \(Self.tooManyBadTokens)")
        // These block no other push: each waits by itself until the setting is corrected.
        case .doubtful: return .retry(.lane, "\(word): \(Self.noneAccepted)").raising(.apnsBadTokens)
        }
    }

    private func finish(_ request: Request, _ verdict: GatewayVerdict) {
        let side = side(request.environment)
        var outcome = verdict.outcome
        let isAccepted = if case .accepted = outcome { true } else { false }
        self.side(request.target.environment).lane.left(
            wasUnproven: request.wasUnproven, isBad: request.isCalledBad ? true : isAccepted ? false : nil)
        side.lane.note(outcome, request.target)
        switch outcome {
        case .accepted(let providerID, _):
            side.accepted()
            side.tokens.good(request.target.token, isProven: !request.wasUnproven)
            if !hasAccepted.load(ordering: .relaxed), !hasAccepted.exchange(true, ordering: .relaxed) {
                production.tokens.works()
                sandbox.tokens.works()
            }
            if request.isCrossed { outcome = .accepted(providerID: providerID, environment: request.environment) }
        // A token that APNs itself reports as dead says nothing against the lane.
        case .dead(_, _, isCertain: true): side.tokens.good(request.target.token, isProven: !request.wasUnproven)
        default: break
        }
        if let alarm = verdict.alarm { reports.raise(alarm, lane: side.name, outcome.reason ?? "") }
        logger.debug("push", metadata: request.log.metadata(outcome))
        request.completion(outcome)
    }

    /// Nil if signing fails, which the key's check at start makes all but impossible.
    private func replacement(for token: String, _ side: Side) -> APNsProviderToken.Token? {
        do throws(CryptoError) {
            return try side.providerToken.replacement(for: token)
        } catch {
            logger.info("provider token cannot be signed", metadata: ["push.reason": .string(error.message)])
            return nil
        }
    }
}

// MARK: Asking whether the credentials work

extension APNsGateway {
    /// Sends a notification to a non-existent device. If APNs complains of the token only, then key, team and topic are right.
    /// No phone gets it, and neither gates nor judges count it.
    package func checkCredentials(_ environment: APNsEnvironment, completion: @escaping @Sendable (CredentialCheck) -> Void) {
        let side = side(environment)
        let lane = side.lane
        let asked = "a push to a device token that cannot exist (\(side.name))"
        let token: String
        do throws(PayloadFault) {
            guard case .token(let current) = try self.token(of: side) else {
                return completion(CredentialCheck(.failed, asked: asked, answered: "no provider token yet", advice: "try again"))
            }
            token = current
        } catch {
            return completion(CredentialCheck(.refused, asked: asked, answered: error.reason, advice: "check APNS_KEY_PATH"))
        }
        let call = HTTPCall(
            method: "POST", url: lane.baseURL + "/3/device/" + Self.impossibleToken,
            headers: [
                ("apns-expiration", "0"), ("apns-priority", "5"), ("apns-push-type", "background"), ("apns-topic", topic),
                ("content-type", "application/json"), ("authorization", "bearer " + token),
            ], body: Array(#"{"aps":{"content-available":1}}"#.utf8))
        let now = time.wallMilliseconds
        lane.multi.submit(call) { result in
            switch result {
            case .failure(let error): completion(.unreachable(asked: asked, error, host: lane.baseURL))
            case .success(let answer):
                completion(CredentialCheck.apns(asked: asked, APNsOutcome.verdict(answer, requestID: "", now: now).outcome))
            }
        }
    }

    static let impossibleToken = String(repeating: "0", count: 64)
}
