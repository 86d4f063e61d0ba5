import CNGHTTP2
import HubCore

/// Turns a scripted fault into a reply; the gateways differ only in the form of an error.
enum FaultReply {
    /// The result of a request, for its reply and its record.
    struct Outcome {
        var reply: Reply
        var status: Int
        var reason: String
    }

    static let shutdownReason = "Shutdown"

    /// - Parameters:
    ///   - success: the answer without the fault.
    ///   - error: encodes the gateway's error for the fault, and returns its reason as well.
    static func outcome(
        of fault: GatewayFault, success: HTTPResponse, error: (GatewayFault) -> (response: HTTPResponse, reason: String)
    ) -> Outcome {
        var outcome: Outcome
        let name = fault.action.rawValue
        switch fault.action {
        case .answer where fault.status == nil && fault.reason == nil:
            outcome = Outcome(reply: .respond(success), status: success.status, reason: "")
        case .answer:
            var (response, reason) = error(fault)
            if let retryAfter = fault.retryAfter { response.headers.append(("retry-after", retryAfter)) }
            outcome = Outcome(reply: .respond(response), status: response.status, reason: reason)
        case .html:
            let status = fault.status ?? 502
            var response = HTTPResponse(
                status: status, contentType: "text/html; charset=UTF-8",
                body: Array("<html><head><title>\(status)</title></head><body><h1>Server Error</h1></body></html>\n".utf8))
            if let retryAfter = fault.retryAfter { response.headers.append(("retry-after", retryAfter)) }
            outcome = Outcome(reply: .respond(response), status: status, reason: name)
        case .reset:
            outcome = Outcome(reply: Reply(action: .reset(code: NGHTTP2_INTERNAL_ERROR.rawValue)), status: 0, reason: name)
        case .refuse:
            outcome = Outcome(reply: Reply(action: .reset(code: NGHTTP2_REFUSED_STREAM.rawValue)), status: 0, reason: name)
        case .goaway:
            let action = Reply.Action.goAway(reason: fault.reason ?? shutdownReason, response: success)
            outcome = Outcome(reply: Reply(action: action), status: success.status, reason: name)
        case .goawayUnprocessed:
            let action = Reply.Action.goAwayUnprocessed(reason: fault.reason ?? shutdownReason, code: NGHTTP2_NO_ERROR.rawValue)
            outcome = Outcome(reply: Reply(action: action), status: 0, reason: name)
        case .calm:
            let action = Reply.Action.goAwayUnprocessed(
                reason: fault.reason ?? "TooManyRequests", code: NGHTTP2_ENHANCE_YOUR_CALM.rawValue)
            outcome = Outcome(reply: Reply(action: action), status: 0, reason: name)
        case .close:
            outcome = Outcome(reply: Reply(action: .closeConnection), status: 0, reason: name)
        }
        if case .respond(let response) = outcome.reply.action { outcome.reply.action = .respond(padded(response, fault)) }
        outcome.reply.delayMilliseconds = fault.delayMilliseconds
        return outcome
    }

    /// Trailing spaces leave a JSON document's value unchanged.
    private static func padded(_ response: HTTPResponse, _ fault: GatewayFault) -> HTTPResponse {
        var response = response
        let missing = max(0, fault.bodyBytes - response.body.count)
        response.body.append(contentsOf: repeatElement(UInt8(ascii: " "), count: missing))
        let headerLength = 100
        for number in 0..<fault.headerBytes / headerLength {
            let name = "x-flood-\(number)"
            response.headers.append((name, String(repeating: "f", count: headerLength - name.utf8.count)))
        }
        return response
    }
}
