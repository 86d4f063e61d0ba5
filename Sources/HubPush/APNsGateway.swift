package import HubCore
package import HubDelivery
package import Logging
internal import HubCrypto
package import HubHTTPClient

/// Sends to APNs: one lane per environment, one provider token for both.
///
/// Which lane a push takes is the target's environment and nothing else; hosts are constants, so that no text from
/// outside chooses where the provider token goes.
package final class APNsGateway: ClosablePushGateway {
    /// More streams than this gain nothing: a push takes tens of milliseconds.
    static let inFlightMax = 200
    static let totalTimeout = Duration.seconds(10)
    /// Twice today's longest tokens; Apple warns against assuming a length.
    static let tokenDigitsMax = 200

    private let topic: String
    private let providerToken: APNsProviderToken
    private let production: PushLane
    private let sandbox: PushLane
    private let time: any TimeSource
    private let logger: Logger

    /// Starts two threads; connections open with the first push.
    /// - Throws: when the key cannot be used or the HTTP client cannot start.
    package init(_ configuration: APNsConfiguration, time: any TimeSource, logger: Logger) throws(PushConfigurationError) {
        let key: ES256PrivateKey
        do throws(CryptoError) {
            key = try ES256PrivateKey(pem: configuration.keyPEM)
        } catch {
            throw PushConfigurationError("the APNs key cannot be used: \(error)")
        }
        topic = configuration.topic
        providerToken = APNsProviderToken(key: key, keyID: configuration.keyID, teamID: configuration.teamID, time: time)
        production = try Self.lane(.production, configuration, time: time, logger: logger)
        sandbox = try Self.lane(.sandbox, configuration, time: time, logger: logger)
        self.time = time
        self.logger = logger
    }

    private static func lane(
        _ environment: APNsEnvironment, _ configuration: APNsConfiguration, time: any TimeSource, logger: Logger
    ) throws(PushConfigurationError) -> PushLane {
        var options = CurlOptions(name: "apns-\(environment.rawValue)")
        options.inFlightMax = inFlightMax
        options.inFlightMaxHTTP1 = 1
        options.primesConnections = true
        options.clearTextHTTP2 = true
        options.connectionsPerHostMax = 1
        options.totalTimeout = totalTimeout
        options.connectionLifetimeMax = PushLane.connectionLifetime()
        options.caFile = configuration.caFile
        options.answerHeaders = ["retry-after", "apns-id"]
        return try PushLane(options, baseURL: configuration.url ?? host(environment), time: time, logger: logger)
    }

    static func host(_ environment: APNsEnvironment) -> String {
        switch environment {
        case .production: "https://api.push.apple.com"
        case .sandbox: "https://api.sandbox.push.apple.com"
        }
    }

    private func lane(_ environment: APNsEnvironment) -> PushLane {
        switch environment {
        case .production: production
        case .sandbox: sandbox
        }
    }

    package func send(_ message: PushMessage, to target: PushTarget, completion: @escaping @Sendable (PushOutcome) -> Void) {
        let lane = lane(target.environment)
        let log = PushLog(message, target)
        // Whatever is decided here is told from another thread, because the caller may hold locks.
        if let outcome = lane.refusal() { return Self.later(outcome, log, logger, completion) }
        guard let path = Self.path(target.token) else {
            return Self.later(
                .dead(reason: "not an APNs device token: it is not hexadecimal", since: nil), log, logger, completion)
        }
        do throws(PayloadFault) {
            let payload = try APNsPayload(message, topic: topic, device: target.device, now: time.wallMilliseconds)
            let request = Request(payload: payload, url: lane.baseURL + path, lane: lane, log: log, completion: completion)
            switch try currentToken() {
            case .token(let token): submit(request, token: token, isResend: false)
            case .wait(let wait):
                Self.later(
                    .retry(after: wait, reason: RetryCause.lane.reason("no provider token yet")), log, logger, completion)
            }
        } catch {
            Self.later(.rejected(reason: error.reason), log, logger, completion)
        }
    }

    /// The request path of a device token; nil for what is not one, which must not become part of a path.
    static func path(_ token: String) -> String? {
        let count = token.utf8.count
        guard count > 0, count <= tokenDigitsMax, count.isMultiple(of: 2), Hex.decode(token.lowercased()) != nil else {
            return nil
        }
        return "/3/device/" + token.lowercased()
    }

    private func currentToken() throws(PayloadFault) -> APNsProviderToken.Token {
        do throws(CryptoError) {
            return try providerToken.current()
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
        production.multi.shutdown(grace: grace)
        sandbox.multi.shutdown(grace: grace)
    }

    /// The transport's numbers for metrics.
    package func counters(_ environment: APNsEnvironment) -> CurlCounters { lane(environment).multi.counters }

    /// Why a lane sends nothing at present; nil while it does.
    package func stoppedReason(_ environment: APNsEnvironment) -> String? { lane(environment).stoppedReason }
}

// MARK: One request

extension APNsGateway {
    private struct Request: Sendable {
        let payload: APNsPayload
        let url: String
        let lane: PushLane
        let log: PushLog
        let completion: @Sendable (PushOutcome) -> Void
    }

    private func submit(_ request: Request, token: String, isResend: Bool) {
        var headers = request.payload.headers.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) }
        headers.append(("authorization", "bearer " + token))
        let call = HTTPCall(method: "POST", url: request.url, headers: headers, body: request.payload.body)
        request.lane.multi.submit(call) { [self] result in answered(request, token: token, isResend: isResend, result) }
    }

    private func answered(
        _ request: Request, token: String, isResend: Bool, _ result: Result<HTTPAnswer, HTTPClientError>
    ) {
        let lane = request.lane
        var verdict: GatewayVerdict
        switch result {
        case .failure(let error): verdict = GatewayVerdict(error)
        case .success(let answer):
            lane.noteVersion(answer.version)
            verdict = APNsOutcome.verdict(
                answer, requestID: request.payload.headers["apns-id"] ?? "", now: time.wallMilliseconds)
            verdict = believed(verdict, status: answer.status, lane)
        }
        switch verdict.action {
        case .none, .replaceAccessToken: break
        case .newConnection: lane.multi.renewConnections()
        case .keepOlderProviderToken: providerToken.tooManyUpdates()
        case .stopLane: lane.stop(verdict.outcome.reason ?? "")
        case .resendOnNewConnection:
            lane.multi.renewConnections()
            if !isResend { return submit(request, token: token, isResend: true) }
        case .replaceProviderToken:
            switch replacement(for: token) {
            case .token(let fresh):
                // APNs keeps refusing on a connection that carried the expired token.
                lane.multi.renewConnections()
                if !isResend { return submit(request, token: fresh, isResend: true) }
            case .wait(let wait): verdict = .retry(.lane, "ExpiredProviderToken", after: wait)
            case nil: verdict = .retry(.lane, "the provider token cannot be signed")
            }
        }
        if case .accepted = verdict.outcome { lane.noteAccepted() }
        logger.debug("push", metadata: request.log.metadata(verdict.outcome))
        request.completion(verdict.outcome)
    }

    /// Nil when signing fails, which the key's check at start makes all but impossible.
    private func replacement(for token: String) -> APNsProviderToken.Token? {
        do throws(CryptoError) {
            return try providerToken.replacement(for: token)
        } catch {
            logger.info("provider token cannot be signed", metadata: ["push.reason": .string(error.message)])
            return nil
        }
    }

    /// Keeps tokens alive when so many of them are called bad that the lane must be wrong, not the tokens.
    private func believed(_ verdict: GatewayVerdict, status: Int, _ lane: PushLane) -> GatewayVerdict {
        guard status == 200 || status == 400 || status == 410 else { return verdict }
        var isBad = false
        if status == 400, case .dead = verdict.outcome { isBad = true }
        guard !lane.noteToken(isBad: isBad), isBad else { return verdict }
        return .rejected(
            "BadDeviceToken in more than \(BadTokenGuard.percentMax) % of the answers: the token is kept; check APNS_TOPIC and the devices' environment",
            .stopLane)
    }
}
