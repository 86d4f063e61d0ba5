internal import HubCore
internal import HubWire

/// Bodies that come in pieces: who may send one, and what they all may take.
///
/// Whether a body is taken is asked from the request's head (`LoopDelegate.bodyLimit`) before any of it is kept: at once where it could be
/// long or its sender waits for the word, and otherwise when it does not come whole with one read, or a tick later. A body that does, as
/// nearly all do, costs nothing here.
extension Loop {
    /// The most bytes that the body may have, asked at once where it could be long.
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

    /// A piece has come, and more is to follow. False: the connection ends.
    func keepBody(_ index: Int, _ connection: HTTPConnection, _ exchange: HTTPExchange) -> Bool {
        guard !exchange.request.body.isEmpty else { return true }
        if let refusal = judge(exchange) { return refuse(index, connection, refusal) }
        let charge = unsafe exchange.charge ?? BodyCharge(bodies, address: remoteAddress(of: connection.wsi, exchange.request))
        exchange.charge = charge
        return charge.grow(to: exchange.request.body.count) || refuse(index, connection, .overloaded)
    }

    /// Asks about those whose bodies are still on the way. Once a tick.
    func judgeWaitingHeads() {
        for index in http.indices {
            guard let connection = http[index], let exchange = connection.exchange, !exchange.isDispatched else { continue }
            guard let refusal = judge(exchange) else { continue }
            if !refuse(index, connection, refusal) { unsafe end(connection.wsi) }
        }
    }

    /// Why the body is not taken; nil: it is, or was asked about before.
    private func judge(_ exchange: HTTPExchange) -> HTTPResponse? {
        if exchange.isJudged { return nil }
        exchange.isJudged = true
        // None of these is longer than anybody's limit.
        guard case .refused(let response)? = delegate?.bodyLimit(of: exchange.request) else { return nil }
        return response
    }

    /// Answers at once, drops what has come, and throws away for a moment what the peer still sends. False: the connection ends.
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
