internal import CLibWebSockets
package import HubCore

/// The HTTP exchanges under way on one loop, by index; a serial number tells the users of one index apart.
@safe struct ExchangeTable {
    private var entries: [(exchange: HTTPExchange, wsi: OpaquePointer)?] = unsafe []
    private var free: [Int] = []
    private var nextSerial: UInt64 = 1

    mutating func insert(_ wsi: OpaquePointer, _ make: (_ serial: UInt64) -> HTTPExchange) -> Int {
        let exchange = make(nextSerial)
        nextSerial += 1
        if let index = free.popLast() {
            unsafe entries[index] = unsafe (exchange, wsi)
            return index
        }
        unsafe entries.append((exchange, wsi))
        return unsafe entries.count - 1
    }

    /// Requests of a lower number have come and are answered.
    var answeredUpTo: UInt64 {
        unsafe entries.reduce(nextSerial) { unsafe $1?.exchange.isAnswered == false ? min($0, $1?.exchange.serial ?? $0) : $0 }
    }

    /// The number that the next request gets.
    var nextNumber: UInt64 { nextSerial }

    var indices: Range<Int> { unsafe entries.indices }

    subscript(index: Int) -> HTTPExchange? { unsafe entries[index]?.exchange }

    mutating func remove(_ index: Int) {
        unsafe entries[index] = nil
        free.append(index)
    }

    /// The connections with an exchange under way.
    var connections: [OpaquePointer] { unsafe entries.compactMap { unsafe $0?.wsi } }

    func connection(at index: Int) -> OpaquePointer? { unsafe entries[index]?.wsi }

    func connection(of reply: HTTPReply) -> OpaquePointer? {
        guard unsafe entries.indices.contains(reply.exchange), let entry = unsafe entries[reply.exchange],
            unsafe entry.exchange.serial == reply.serial
        else { return nil }
        return unsafe entry.wsi
    }
}

/// What libwebsockets tells about HTTP requests. Each returns false to have the connection ended.
extension Loop {
    func requestHead(_ wsi: OpaquePointer, _ session: UnsafeMutablePointer<LoopSession>) -> Bool {
        unsafe exchangeClosed(session)
        unsafe session.pointee.bodyEnded = false
        guard let target = unsafe RequestHead.target(wsi) else { return false }
        let contentLength = unsafe RequestHead.header(wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH)
        let framing = unsafe HTTPExchange.framing(
            contentLength: contentLength,
            transferEncoding: RequestHead.header(wsi, WSI_TOKEN_HTTP_TRANSFER_ENCODING), bodyBytesMax: options.bodyBytesMax)
        let request = unsafe HTTPRequest(
            method: target.method, path: target.path, query: RequestHead.query(wsi), headers: RequestHead.headers(wsi))
        switch framing {
        case .failure(let refusal):
            let isReadOn = refusal.status == 413
            return unsafe refuseHead(request, .error(refusal.status, refusal.sentence), isReadOn: isReadOn, session, wsi)
        case .success(let framing):
            guard unsafe countConnection(wsi, request) else {
                return unsafe refuseHead(request, .tooManyConnections, isReadOn: framing != .none, session, wsi)
            }
            let limit: Int
            switch judgeHead(request, framing) {
            case .bytes(let most): limit = most
            case .refused(let response): return unsafe refuseHead(request, response, isReadOn: true, session, wsi)
            }
            let index = unsafe exchanges.insert(wsi) {
                HTTPExchange(serial: $0, request: request, framing: framing, bodyBytesMax: limit)
            }
            exchanges[index]?.isJudged = Self.isAskedAtOnce(framing)
            // Without a length the library would take what follows, the next request, for this one's body.
            exchanges[index]?.hasUnknownEnd = contentLength == nil && RequestHead.methodsWithBody.contains(target.method)
            if framing != .none { exchanges[index]?.deadline = bodyDeadline }
            unsafe session.pointee.exchangePlusOne = UInt32(index + 1)
            return unsafe framing == .none ? dispatch(index, session, wsi) : true
        }
    }

    /// The head is enough to refuse the request, and the connection ends behind the answer.
    /// - Parameter isReadOn: a body may be on its way, which is thrown away for a moment so that the answer is read.
    private func refuseHead(
        _ request: HTTPRequest, _ response: HTTPResponse, isReadOn: Bool, _ session: UnsafeMutablePointer<LoopSession>, _ wsi: OpaquePointer
    ) -> Bool {
        guard unsafe write(response, to: wsi, isHead: request.method == "HEAD", mustClose: true) else { return false }
        // The library reads on only where its length is known to be one of a body.
        guard isReadOn, RequestHead.methodsWithBody.contains(request.method) else { return false }
        let index = unsafe exchanges.insert(wsi) { HTTPExchange(serial: $0, request: request, framing: .none, bodyBytesMax: 0) }
        unsafe session.pointee.exchangePlusOne = UInt32(index + 1)
        linger(index)
        return true
    }

    func requestBody(_ wsi: OpaquePointer, _ session: UnsafeMutablePointer<LoopSession>, _ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let index = unsafe exchangeIndex(session), let exchange = exchanges[index], !exchange.isDispatched else { return true }
        // Behind an earlier request that was not waited for, this library hands over a request's own head as its body.
        if exchange.request.body.isEmpty, case .length = exchange.framing, unsafe bytes.starts(with: "\(exchange.request.method) /".utf8) {
            exchange.isDispatched = true
            _ = unsafe write(.error(400, "wait for an answer before sending the next request"), to: wsi, isHead: false, mustClose: true)
            return false
        }
        // A body with a length is dispatched by the library's own end of it, after which the connection can be reused.
        switch unsafe exchange.receive(bytes) {
        case .incomplete: return unsafe keepBody(index, wsi)
        case .complete: return unsafe exchange.framing == .chunked ? dispatch(index, session, wsi) : true
        case .refused(let status, let sentence): return unsafe refuse(index, wsi, .error(status, sentence))
        }
    }

    /// The answer is written and nothing else will be; what the peer still sends is thrown away for a moment.
    func linger(_ index: Int) {
        exchanges[index]?.isDispatched = true
        exchanges[index]?.isAnswered = true
        exchanges[index]?.lingersUntil = tick &+ LoopOptions.lingerTicks
    }

    func requestBodyEnded(_ wsi: OpaquePointer, _ session: UnsafeMutablePointer<LoopSession>) -> Bool {
        if let index = unsafe exchangeIndex(session), exchanges[index]?.lingersUntil != nil { return false }
        // Told again: bytes of a next request wait behind the body. The library would tell this for ever, and then take that
        // request's head for its body; so whoever does not wait for answers gets the one that is ready, and the connection ends.
        if unsafe session.pointee.bodyEnded {
            guard let index = unsafe exchangeIndex(session), let exchange = exchanges[index], let response = exchange.response else {
                return false
            }
            _ = unsafe write(response, to: wsi, isHead: false, mustClose: true)
            return false
        }
        unsafe session.pointee.bodyEnded = true
        guard let index = unsafe exchangeIndex(session), let exchange = exchanges[index], !exchange.isDispatched else { return true }
        return unsafe dispatch(index, session, wsi)
    }

    private func dispatch(_ index: Int, _ session: UnsafeMutablePointer<LoopSession>, _ wsi: OpaquePointer) -> Bool {
        guard let exchange = exchanges[index] else { return false }
        exchange.isDispatched = true
        exchange.charge = nil
        let reply = HTTPReply(loop: self.index, exchange: index, serial: exchange.serial)
        guard let delegate else { return false }
        if let response = delegate.request(exchange.request, reply: reply) {
            // Behind a body the answer waits for the next writable callback, so that `requestBodyEnded` notices a request that
            // was sent without waiting before the library begins to read it.
            if case .length = exchange.framing {
                respond(reply, response)
                return true
            }
            return unsafe finish(index, session, response, wsi)
        }
        // The answer comes from elsewhere and may take longer than a request's head or body may.
        unsafe tandem_lws_no_timeout(wsi)
        return true
    }

    /// Answers an exchange that was left open. Nothing happens when its connection is gone.
    package func respond(_ reply: HTTPReply, _ response: HTTPResponse) {
        assertOnThread()
        guard let wsi = unsafe exchanges.connection(of: reply), let exchange = exchanges[reply.exchange], !exchange.isAnswered else {
            return
        }
        exchange.isAnswered = true
        exchange.response = response
        hasAnswersWaiting = true
        unsafe lws_callback_on_writable(wsi)
    }

    func responseWritable(_ wsi: OpaquePointer, _ session: UnsafeMutablePointer<LoopSession>) -> Bool {
        guard let index = unsafe exchangeIndex(session), let exchange = exchanges[index] else { return true }
        if let pending = exchange.pending { return unsafe goOn(pending, index, session, wsi) }
        guard let response = exchange.response else { return true }
        return unsafe finish(index, session, response, wsi)
    }

    private func finish(
        _ index: Int, _ session: UnsafeMutablePointer<LoopSession>, _ response: HTTPResponse, _ wsi: OpaquePointer
    ) -> Bool {
        guard let exchange = exchanges[index] else { return false }
        exchange.isAnswered = true
        exchange.response = nil
        count(response)
        let isHead = exchange.request.method == "HEAD"
        return unsafe begin(HTTPResponseBytes.encode(response, isHead: isHead, mustClose: exchange.mustClose), index, session, wsi)
    }

    private func count(_ response: HTTPResponse) {
        unsafe tally.responses[min(max(response.status / 100, 0), tally.responses.count - 1)] += 1
    }

    /// A short answer of the transport's own, in one piece.
    func write(_ response: HTTPResponse, to wsi: OpaquePointer, isHead: Bool, mustClose: Bool) -> Bool {
        count(response)
        let bytes = HTTPResponseBytes.encode(response, isHead: isHead, mustClose: mustClose)
        return unsafe bytes.withUnsafeBytes { bytes in
            unsafe Int(tandem_lws_write_raw(wsi, bytes.baseAddress, bytes.count)) == bytes.count
        }
    }

    /// The connection is gone, or goes on with its next request.
    func exchangeClosed(_ session: UnsafeMutablePointer<LoopSession>) {
        if let index = unsafe exchangeIndex(session) {
            if let exchange = exchanges[index] {
                queuedMemory.bytes -= exchange.pending?.bytes.count ?? 0
                if let wsi = unsafe exchanges.connection(at: index) { unsafe uncountForwarded(wsi, exchange.request) }
            }
            exchanges.remove(index)
            unsafe session.pointee.exchangePlusOne = 0
        }
    }

    private func exchangeIndex(_ session: UnsafeMutablePointer<LoopSession>) -> Int? {
        let indexPlusOne = unsafe session.pointee.exchangePlusOne
        return indexPlusOne == 0 ? nil : Int(indexPlusOne) - 1
    }
}

extension HTTPResponse {
    /// The address has as many connections as it may have.
    fileprivate static var tooManyConnections: HTTPResponse {
        var response = HTTPResponse.error(429, "too many connections from this address: end others first, or use them for more requests")
        response.headers = [("Retry-After", "1")]
        return response
    }
}
