import HubCore
import HubCrypto
import HubJSON

/// The simulated FCM HTTP v1 service and its service account's token endpoint, on one port.
final class FCMService: GatewayService {
    private let ledger: Ledger
    private let oauth: OAuthEndpoint
    private let clock: any TimeSource
    private var messages: UInt64 = 0

    init(ledger: Ledger, oauth: OAuthEndpoint, clock: any TimeSource) {
        self.ledger = ledger
        self.oauth = oauth
        self.clock = clock
    }

    func reply(to request: ReceivedRequest, from peer: PeerState) -> Reply {
        let segments = request.pathSegments
        if segments == ["token"] { return tokenReply(to: request) }
        var token = ""
        var identifier = ""
        var outcome: FaultReply.Outcome
        do throws(FCMError) {
            try checkPath(request, segments)
            guard let bearer = request.header("authorization").flatMap(BearerToken.read),
                oauth.tokens.isValid(bearer, now: clock.monotonicMilliseconds)
            else { throw FCMError.unauthenticated }
            let message = try message(in: request)
            token = message.token
            identifier = nextName(isValidateOnly: message.isValidateOnly)
            outcome = acceptance(of: message, identifier: identifier)
        } catch {
            if token.isEmpty { token = Self.target(in: request) }
            outcome = .init(reply: .respond(error.response), status: error.httpStatus, reason: error.reason)
        }
        if outcome.status != 200 { identifier = "" }
        ledger.record(
            RecordedRequest(
                provider: .fcm, token: token, request: request, receivedAt: clock.wallMilliseconds, status: outcome.status,
                reason: outcome.reason, identifier: identifier))
        return outcome.reply
    }

    private func checkPath(_ request: ReceivedRequest, _ segments: [String]) throws(FCMError) {
        if request.isHeaderListTooLarge {
            throw FCMError(httpStatus: 431, status: "INVALID_ARGUMENT", message: "Request header fields too large.")
        }
        guard segments.count == 4, segments[0] == "v1", segments[1] == "projects", segments[3] == "messages:send",
            request.method == "POST"
        else { throw FCMError(httpStatus: 404, status: "NOT_FOUND", message: "Method not found.") }
        guard segments[2] == oauth.account.projectID else {
            throw FCMError(httpStatus: 404, status: "NOT_FOUND", message: "Project not found.")
        }
    }

    private func message(in request: ReceivedRequest) throws(FCMError) -> FCMMessageCheck.Message {
        guard request.bodyBytes == request.body.count else {
            throw .malformed(field: "", "Request payload size exceeds the limit: \(SimulatorLimits.bodyBytesKept) bytes.")
        }
        let body: JSONValue
        do {
            body = try JSONValue(parsing: request.body)
        } catch {
            throw .malformed(field: "", "Invalid JSON payload received. \(error)")
        }
        return try FCMMessageCheck.check(body)
    }

    /// The target of a refused message, so that its record can be found.
    private static func target(in request: ReceivedRequest) -> String {
        guard let message = (try? JSONValue(parsing: request.body))?["message"] else { return "" }
        return message["token"]?.stringValue ?? message["fid"]?.stringValue ?? ""
    }

    private func nextName(isValidateOnly: Bool) -> String {
        messages += 1
        let id = isValidateOnly ? "fake_message_id" : "0:\(clock.wallMilliseconds)%\(messages)"
        return "projects/\(oauth.account.projectID)/messages/\(id)"
    }

    private func acceptance(of message: FCMMessageCheck.Message, identifier: String) -> FaultReply.Outcome {
        let success = HTTPResponse.json(["name": .string(identifier)])
        let scripted = ledger.takeFault(provider: .fcm, token: message.token)
        guard let fault = scripted ?? FCMTokenConvention.fault(for: message.token) else {
            return .init(reply: .respond(success), status: 200, reason: "")
        }
        return FaultReply.outcome(of: fault, success: success) { fault in
            let error = FCMError(fault: fault)
            return (error.response, error.reason)
        }
    }

    private func tokenReply(to request: ReceivedRequest) -> Reply {
        var outcome: FaultReply.Outcome
        var recorded = request
        // Not recorded: the assertion would be usable for an hour by every reader.
        recorded.body = []
        do throws(OAuthEndpoint.Refusal) {
            let claims = try oauth.claims(of: request)
            recorded.body = claims.serialized()
            if let fault = ledger.takeFault(provider: .oauth, token: GatewayProvider.oauth.rawValue) {
                outcome = FaultReply.outcome(of: fault, success: oauth.grant()) { fault in
                    let refusal = OAuthEndpoint.Refusal(
                        status: fault.status ?? 400, error: fault.reason ?? "invalid_grant",
                        description: fault.message ?? "Scripted error.")
                    return (refusal.response, refusal.error)
                }
            } else {
                outcome = .init(reply: .respond(oauth.grant()), status: 200, reason: "")
            }
        } catch {
            outcome = .init(reply: .respond(error.response), status: error.status, reason: error.error)
        }
        ledger.record(
            RecordedRequest(
                provider: .oauth, token: "", request: recorded, receivedAt: clock.wallMilliseconds, status: outcome.status,
                reason: outcome.reason))
        return outcome.reply
    }
}
