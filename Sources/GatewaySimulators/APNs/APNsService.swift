import HubCore
import HubCrypto

/// The simulated APNs: checks each request by Apple's documentation, answers and records it.
final class APNsService: GatewayService {
    /// A provider token younger than this may not be replaced on its connection (docs/protocol.md, 9.1).
    static let tokenUpdateMilliseconds: UInt64 = 20 * 60 * 1000

    /// A token that no device has: it is refused after all other checks.
    static let impossibleToken = String(repeating: "0", count: 64)

    private let environment: SimulatedEnvironment
    private let ledger: Ledger
    private let tokenCheck: APNsProviderTokenCheck
    private let requestCheck: APNsRequestCheck
    private let streamLimit: StreamLimit
    private let clock: any TimeSource

    init(
        environment: SimulatedEnvironment, ledger: Ledger, tokenCheck: APNsProviderTokenCheck, topic: String, streamLimit: StreamLimit,
        clock: any TimeSource
    ) {
        self.environment = environment
        self.ledger = ledger
        self.tokenCheck = tokenCheck
        requestCheck = APNsRequestCheck(topic: topic)
        self.streamLimit = streamLimit
        self.clock = clock
    }

    func reply(to request: ReceivedRequest, from peer: PeerState) -> Reply {
        let path = APNsRequestCheck.deviceToken(in: request)
        let identifier = request.header("apns-id").flatMap { CanonicalUUID.isValid($0) ? $0 : nil } ?? RandomUUID.make()
        var outcome: FaultReply.Outcome
        if let reason = path.refusal ?? refusal(of: request, token: path.token, from: peer) {
            let response = error(reason, status: APNsReason.status(of: reason), timestamp: nil, identifier: identifier)
            outcome = .init(reply: .respond(response), status: response.status, reason: reason)
        } else {
            outcome = acceptance(token: path.token, identifier: identifier)
            if outcome.status == 200, !peer.hasSucceeded {
                peer.hasSucceeded = true
                outcome.reply.streamsMax = streamLimit.afterSuccess
            }
        }
        let credential = request.header("authorization").flatMap(BearerToken.read).flatMap(tokenCheck.credential)
        ledger.record(
            RecordedRequest(
                provider: .apns, token: path.token, request: request, receivedAt: clock.wallMilliseconds, status: outcome.status,
                reason: outcome.reason, identifier: identifier, credential: credential, environment: environment))
        return outcome.reply
    }

    private func refusal(of request: ReceivedRequest, token: String, from peer: PeerState) -> String? {
        if request.isHeaderListTooLarge { return "Forbidden" }
        let (verdict, providerToken) = tokenCheck.check(request.header("authorization"))
        if case .refused(let reason) = verdict { return reason }
        if peer.providerToken != providerToken {
            let now = clock.monotonicMilliseconds
            if !peer.providerToken.isEmpty, now - peer.providerTokenSince < Self.tokenUpdateMilliseconds {
                return "TooManyProviderTokenUpdates"
            }
            peer.providerToken = providerToken
            peer.providerTokenSince = now
        }
        return requestCheck.refusal(of: request, token: token) ?? (token == Self.impossibleToken ? "BadDeviceToken" : nil)
    }

    private func acceptance(token: String, identifier: String) -> FaultReply.Outcome {
        let success = HTTPResponse(status: 200, body: [], headers: [("apns-id", identifier)])
        // Tokens are hexadecimal numbers, so the case of their letters is irrelevant.
        guard let fault = ledger.takeFault(provider: .apns, token: token.lowercased(), environment: environment) else {
            return .init(reply: .respond(success), status: 200, reason: "")
        }
        return FaultReply.outcome(of: fault, success: success) { fault in
            let reason = fault.reason ?? APNsReason.usual(for: fault.status ?? 500)
            let status = fault.status ?? APNsReason.status(of: reason)
            let timestamp = fault.timestamp ?? (status == 410 ? clock.wallMilliseconds : nil)
            return (error(reason, status: status, timestamp: timestamp, identifier: identifier), reason)
        }
    }

    private func error(_ reason: String, status: Int, timestamp: Int64?, identifier: String) -> HTTPResponse {
        var body: [String: JSONValue] = ["reason": .string(reason)]
        body["timestamp"] = timestamp.map(JSONValue.int)
        return HTTPResponse(status: status, body: JSONValue.object(body).serialized(), headers: [("apns-id", identifier)])
    }
}

/// A random UUID (RFC 9562, version 4) in the form of APNs' answers.
enum RandomUUID {
    static func make() -> String {
        var bytes = SecureRandom.bytes(16)
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        let digits = Array(Hex.encode(bytes))
        return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }.joined(separator: "-")
    }
}
