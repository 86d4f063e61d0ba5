package import HubCore
package import HubDelivery
package import Logging
package import HubHTTPClient

/// Sends to FCM HTTP v1: one lane for messages and a small one for access tokens, which must not queue behind them.
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
    private let time: any TimeSource
    private let logger: Logger

    /// Starts two threads; connections open with the first push.
    /// - Throws: when the HTTP client cannot start.
    package init(_ configuration: FCMConfiguration, time: any TimeSource, logger: Logger) throws(PushConfigurationError) {
        var options = CurlOptions(name: "fcm")
        options.inFlightMax = Self.inFlightMax
        options.inFlightMaxHTTP1 = Self.connectionsMax
        options.connectionsPerHostMax = Self.connectionsMax
        options.totalTimeout = Self.totalTimeout
        options.connectionLifetimeMax = PushLane.connectionLifetime()
        options.caFile = configuration.caFile
        lane = try PushLane(options, baseURL: configuration.url ?? Self.host, time: time, logger: logger)
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
    }

    package func send(_ message: PushMessage, to target: PushTarget, completion: @escaping @Sendable (PushOutcome) -> Void) {
        let log = PushLog(message, target)
        // Whatever is decided here is told from another thread, because the caller may hold locks.
        let later: @Sendable (PushOutcome) -> Void = { [logger] outcome in
            Task {
                logger.debug("push", metadata: log.metadata(outcome))
                completion(outcome)
            }
        }
        if let outcome = lane.refusal() { return later(outcome) }
        guard !target.token.isEmpty else { return later(.dead(reason: "the device token is empty", since: nil)) }
        do throws(PayloadFault) {
            let payload = try FCMPayload(message, target: target, now: time.wallMilliseconds)
            submit(Request(body: payload.body, log: log, completion: completion), isResend: false)
        } catch {
            later(.rejected(reason: error.reason))
        }
    }

    package func shutdown(grace: Duration) {
        // Sends that wait for a token reach the lane before it closes.
        tokenClient.shutdown(grace: grace)
        lane.multi.shutdown(grace: grace)
    }

    /// The transport's numbers for metrics.
    package var counters: CurlCounters { lane.multi.counters }

    /// Why the lane sends nothing at present; nil while it does.
    package var stoppedReason: String? { lane.stoppedReason }

    /// Access-token requests made so far.
    package var tokenRequests: Int { accessToken.requests }
}

// MARK: One request

extension FCMGateway {
    private struct Request: Sendable {
        let body: [UInt8]
        let log: PushLog
        let completion: @Sendable (PushOutcome) -> Void
    }

    private func submit(_ request: Request, isResend: Bool) {
        accessToken.withToken { [self] token in
            switch token {
            case .success(let token):
                let call = HTTPCall(
                    method: "POST", url: url,
                    headers: [("authorization", "Bearer " + token), ("content-type", "application/json")], body: request.body)
                lane.multi.submit(call) { [self] result in answered(request, token: token, isResend: isResend, result) }
            case .failure(let fault):
                // Told from another thread: without a wait in between this may still be the caller's.
                Task { [self] in finish(request, verdict(fault)) }
            }
        }
    }

    private func verdict(_ fault: AccessTokenFault) -> GatewayVerdict {
        fault.isRetryable
            ? .retry(.lane, fault.reason, after: fault.after)
            : .rejected("\(fault.reason): check the service account and the clock", .stopLane)
    }

    private func answered(
        _ request: Request, token: String, isResend: Bool, _ result: Result<HTTPAnswer, HTTPClientError>
    ) {
        let verdict: GatewayVerdict
        switch result {
        case .failure(let error): verdict = GatewayVerdict(error)
        case .success(let answer):
            lane.noteVersion(answer.version)
            verdict = FCMOutcome.verdict(answer, now: time.wallMilliseconds)
        }
        if verdict.action == .replaceAccessToken {
            accessToken.invalidate(token)
            if !isResend { return submit(request, isResend: true) }
            // A token fetched a moment ago was refused too: asking for more of them does not help.
            lane.stop(verdict.outcome.reason ?? "")
        }
        finish(request, verdict)
    }

    private func finish(_ request: Request, _ verdict: GatewayVerdict) {
        switch verdict.action {
        case .stopLane: lane.stop(verdict.outcome.reason ?? "")
        case .newConnection: lane.multi.renewConnections()
        default: break
        }
        if case .accepted = verdict.outcome { lane.noteAccepted() }
        logger.debug("push", metadata: request.log.metadata(verdict.outcome))
        request.completion(verdict.outcome)
    }
}
