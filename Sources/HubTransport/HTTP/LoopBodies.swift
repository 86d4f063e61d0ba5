internal import HubCore
internal import HubWire

/// Bodies received in pieces: the permission for each, and the bound for all.
///
/// The delegate judges a body by the request's head (`LoopDelegate.bodyLimit`) before any of it is kept. A long or
/// chunked body, and one whose sender waits for `100 Continue`, is judged at once. A short body is judged only when it
/// does not arrive whole in one read, or a tick later. Nearly all bodies arrive whole and cost nothing here.
extension Loop {
    /// The body's limit; the delegate is asked at once where the body could be long.
    func judgeHead(_ head: RequestHead) -> BodyLimit {
        if case .length(let length) = head.framing, length > options.bodyBytesMax { return .tooLong(options.bodyBytesMax) }
        guard Self.isAskedAtOnce(head) else { return .bytes(options.bodyBytesMax) }
        switch delegate?.bodyLimit(of: head.request) ?? .bytes(.max) {
        case .refused(let response): return .refused(response)
        case .bytes(let most):
            let most = min(most, options.bodyBytesMax)
            if case .length(let length) = head.framing, length > most { return .tooLong(most) }
            return .bytes(most)
        }
    }

    static func isAskedAtOnce(_ head: RequestHead) -> Bool {
        switch head.framing {
        case .none: false
        case .length(let length): length > LoopOptions.unaskedBodyBytesMax || head.expectsContinue
        case .chunked: true
        }
    }

    /// Keeps a piece of an incomplete body. False: the connection ends.
    func keepBody(_ index: Int, _ connection: HTTPConnection, _ exchange: HTTPExchange) -> Bool {
        guard exchange.bodyBytes > 0 else { return true }
        if let refusal = judge(exchange) { return refuse(index, connection, refusal) }
        let charge = unsafe exchange.charge ?? BodyCharge(bodies, address: remoteAddress(of: connection.socket, exchange.request))
        exchange.charge = charge
        return charge.grow(to: exchange.bodyBytes) || refuse(index, connection, .overloaded)
    }

    /// Judges requests whose bodies are incomplete. Once per tick.
    func judgeWaitingHeads() {
        for index in http.indices {
            guard let connection = http[index], let exchange = connection.exchange, !exchange.isDispatched else { continue }
            guard let refusal = judge(exchange) else { continue }
            if !refuse(index, connection, refusal) { unsafe end(connection.socket) }
        }
    }

    /// The refusal of a body; nil when it is accepted, or was judged before.
    private func judge(_ exchange: HTTPExchange) -> HTTPResponse? {
        if exchange.isJudged { return nil }
        exchange.isJudged = true
        // Bodies judged here are shorter than any limit.
        guard case .refused(let response)? = delegate?.bodyLimit(of: exchange.request) else { return nil }
        return response
    }

    /// Answers at once, drops the bytes received, and discards further ones for a moment. False: the connection ends.
    func refuse(_ index: Int, _ connection: HTTPConnection, _ response: HTTPResponse) -> Bool {
        endExchange(connection)
        return refuseHead(index, connection, response)
    }
}

extension BodyLimit {
    fileprivate static func tooLong(_ most: Int) -> BodyLimit { .refused(.error(413, HTTPExchange.tooLong(most))) }
}

extension HTTPResponse {
    /// No room for another unfinished body.
    fileprivate static var overloaded: HTTPResponse {
        var response = HTTPResponse.error(503, "too many request bodies are on their way: try again in a moment")
        response.headers = [("Retry-After", "1")]
        return response
    }
}
