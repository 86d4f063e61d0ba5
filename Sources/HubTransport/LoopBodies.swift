internal import CLibWebSockets
internal import HubCore

/// Bodies that come in pieces: who may send one, and what they all may take.
///
/// Whether a body is taken is asked from the request's head (`LoopDelegate.bodyLimit`) before any of it is kept: at once where it could be
/// long, and otherwise when it does not come whole with one read, or a tick later. A body that does, as nearly all do, costs nothing here.
extension Loop {
    /// The most bytes that the body may have, asked at once where it could be long.
    func judgeHead(_ request: HTTPRequest, _ framing: HTTPExchange.Framing) -> BodyLimit {
        guard Self.isAskedAtOnce(framing) else { return .bytes(options.bodyBytesMax) }
        switch delegate?.bodyLimit(of: request) ?? .bytes(.max) {
        case .refused(let response): return .refused(response)
        case .bytes(let most):
            let most = min(most, options.bodyBytesMax)
            if case .length(let length) = framing, length > most { return .refused(.error(413, HTTPExchange.tooLong(most))) }
            return .bytes(most)
        }
    }

    static func isAskedAtOnce(_ framing: HTTPExchange.Framing) -> Bool {
        switch framing {
        case .none: false
        case .length(let length): length > LoopOptions.unaskedBodyBytesMax
        case .chunked: true
        }
    }

    /// A piece has come, and more is to follow. False: the connection ends.
    func keepBody(_ index: Int, _ wsi: OpaquePointer) -> Bool {
        guard let exchange = exchanges[index], !exchange.request.body.isEmpty else { return true }
        if let refusal = judge(exchange) { return unsafe refuse(index, wsi, refusal) }
        let charge = unsafe exchange.charge ?? BodyCharge(bodies, address: remoteAddress(of: wsi, exchange.request))
        exchange.charge = charge
        return unsafe charge.grow(to: exchange.request.body.count) || refuse(index, wsi, .overloaded)
    }

    /// Asks about those whose bodies are still on the way. Once a tick.
    func judgeWaitingHeads() {
        for index in exchanges.indices {
            guard let exchange = exchanges[index], !exchange.isDispatched, exchange.framing != .none, let refusal = judge(exchange),
                let wsi = unsafe exchanges.connection(at: index)
            else { continue }
            if unsafe !refuse(index, wsi, refusal) { unsafe end(wsi) }
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
    func refuse(_ index: Int, _ wsi: OpaquePointer, _ response: HTTPResponse) -> Bool {
        guard let exchange = exchanges[index] else { return false }
        exchange.request.body = []
        exchange.charge = nil
        guard unsafe write(response, to: wsi, isHead: false, mustClose: true) else { return false }
        linger(index)
        return true
    }
}

extension HTTPResponse {
    /// No room for another unfinished body.
    fileprivate static var overloaded: HTTPResponse {
        var response = HTTPResponse.error(503, "too many request bodies are on their way: try again in a moment")
        response.headers = [("Retry-After", "1")]
        return response
    }
}
