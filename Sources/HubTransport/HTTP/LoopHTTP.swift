internal import CLibWebSockets
package import HubCore
internal import HubWire

/// HTTP connections: heads are read here, requests served one after the other, and upgrades judged.
extension Loop {
    /// Several lines of this header are joined by commas.
    static let forwardedFor = "x-forwarded-for"

    /// Takes bytes of a connection that is not upgraded. False: the connection ends at once.
    func receivedRequests(_ socket: SocketPointer, _ bytes: UnsafeRawBufferPointer) -> Bool {
        if unsafe socket.pointee.doorPlusOne == 0 { unsafe openDoor(socket) }
        let index = unsafe Int(socket.pointee.doorPlusOne) - 1
        guard let connection = http[index] else { return false }
        // Otherwise one peer's bytes would become another one's request.
        precondition(unsafe connection.socket == socket, "HTTP connection \(index) belongs to another peer")
        assert(connection.scanned <= connection.input.count, "\(connection.scanned) of \(connection.input.count) bytes were scanned")
        if connection.input.isEmpty, connection.exchange == nil { connection.deadline = bodyDeadline }
        guard connection.input.isEmpty else {
            unsafe connection.keep(bytes)
            return serveInput(index, connection)
        }
        var rest = unsafe bytes
        return unsafe serve(index, connection, &rest)
    }

    /// Makes an HTTP connection of the socket, with a deadline for its first head.
    func openDoor(_ socket: SocketPointer) {
        // Ends the library's time-out for the TLS handshake.
        if let tls = unsafe socket.pointee.tls { unsafe tandem_lws_no_timeout(tls) }
        let index = unsafe http.insert(HTTPConnection(socket, deadline: bodyDeadline))
        unsafe socket.pointee.doorPlusOne = UInt32(index + 1)
    }

    /// Serves the bytes received already.
    func serveInput(_ index: Int, _ connection: HTTPConnection) -> Bool {
        unsafe connection.takeInput().withUnsafeBytes { bytes in
            var rest = unsafe bytes
            return unsafe serve(index, connection, &rest)
        }
    }

    /// Reads and serves requests until bytes are missing or an answer is pending; unused bytes are kept. False: the
    /// connection ends at once.
    private func serve(_ index: Int, _ connection: HTTPConnection, _ rest: inout UnsafeRawBufferPointer) -> Bool {
        while http[index] === connection, rest.count > 0 {
            if let exchange = connection.exchange {
                if exchange.isDispatched { break }
                guard unsafe readBody(index, connection, exchange, &rest) else { return false }
            } else {
                switch unsafe RequestHead.read(rest, scanned: connection.scanned, memory: &heads) {
                case .incomplete(let scanned):
                    connection.scanned = scanned
                    unsafe connection.keep(rest)
                    readOn(connection, true)
                    return sendGathered(connection)
                case .refused(let refusal): return refuseHead(index, connection, refusal.response)
                case .complete(let head, let count):
                    assert(count > 0 && count <= rest.count, "a head of \(count) bytes in \(rest.count)")
                    connection.scanned = 0
                    let offer = head.upgrade.flatMap { offer in SocketPath.key(in: head.request.path).map { (offer, key: $0) } }
                    if offer != nil, connection.hasGathered {
                        // Frames would overtake answers that wait.
                        guard sendGathered(connection) else { return false }
                        if unsafe hasUnsent(connection.socket) { return unsafe keepUntilSent(connection, rest) }
                    }
                    unsafe rest = unsafe UnsafeRawBufferPointer(rebasing: rest[count...])
                    if let (offer, key) = offer { return unsafe upgrade(index, connection, head, offer, key, rest) }
                    guard begin(index, connection, head, hasMore: rest.count > 0) else { return false }
                }
            }
        }
        guard http[index] === connection else { return true }
        unsafe connection.keep(rest)
        readOn(connection, connection.input.isEmpty)
        return sendGathered(connection)
    }

    /// Keeps a request until the answers before it are sent. Always true.
    private func keepUntilSent(_ connection: HTTPConnection, _ request: UnsafeRawBufferPointer) -> Bool {
        unsafe connection.keep(request)
        connection.deadline = bodyDeadline
        readOn(connection, false)
        unsafe awaitWritable(connection.socket)
        return true
    }

    /// Resumes or stops reading. An early request waits in the kernel, except for bytes read along with the one before.
    func readOn(_ connection: HTTPConnection, _ isReading: Bool) {
        unsafe setReading(connection.socket, isReading)
    }

    // MARK: Upgrades

    /// Judges a handshake. A refusal is an HTTP answer. The bytes after an accepted head are frames.
    private func upgrade(
        _ index: Int, _ connection: HTTPConnection, _ head: RequestHead, _ offer: UpgradeOffer, _ key: String,
        _ rest: UnsafeRawBufferPointer
    ) -> Bool {
        let answer: [UInt8]
        do throws(HeadRefusal) {
            answer = try offer.accept(method: head.request.method, framing: head.framing)
        } catch {
            return refuseHead(index, connection, error.response)
        }
        let socket = unsafe connection.socket
        guard unsafe upgraded(socket), let slot = unsafe slot(of: socket) else {
            return refuseHead(index, connection, .error(503, "over capacity: try again in a moment"))
        }
        // Reading has stopped if the handshake waited for an answer before it.
        readOn(connection, true)
        unsafe leave(socket)
        guard unsafe greet(slot, socket, answer, head, key: key) else { return false }
        guard rest.count > 0, unsafe self.slot(of: socket) == slot else { return true }
        let frames = UnsafeMutableRawBufferPointer.allocate(byteCount: rest.count, alignment: 8)
        defer { unsafe frames.deallocate() }
        unsafe frames.copyMemory(from: rest)
        return unsafe receivedFrames(slot, frames)
    }

    // MARK: Requests

    /// Begins a request whose head is complete.
    private func begin(_ index: Int, _ connection: HTTPConnection, _ head: consuming RequestHead, hasMore: Bool) -> Bool {
        guard unsafe countConnection(connection.socket, head.request) else { return refuseHead(index, connection, .tooManyConnections) }
        let limit: Int
        switch judgeHead(head) {
        case .bytes(let most): limit = most
        case .refused(let response): return refuseHead(index, connection, response)
        }
        assert(connection.exchange == nil, "HTTP connection \(index) serves two requests at once")
        let (isJudged, waits) = (Self.isAskedAtOnce(head), head.expectsContinue && !hasMore)
        let exchange = http.takeExchange()
        exchange.begin(serial: http.takeSerial(), head, bodyBytesMax: limit, deadline: bodyDeadline)
        exchange.isJudged = isJudged
        connection.exchange = exchange
        if exchange.framing == .none { return dispatch(index, connection, exchange, isFollowed: hasMore) }
        return unsafe !waits || write(connection.takeGathered(and: HTTPResponseBytes.goOn), to: connection.socket)
    }

    private func readBody(
        _ index: Int, _ connection: HTTPConnection, _ exchange: HTTPExchange, _ rest: inout UnsafeRawBufferPointer
    ) -> Bool {
        // An incomplete body has no more memory than is counted for it.
        if exchange.isWhole(in: rest.count) { exchange.lend(unsafe heads.room.takeBody()) }
        return switch unsafe exchange.receive(&rest) {
        case .incomplete: keepBody(index, connection, exchange)
        case .complete: dispatch(index, connection, exchange, isFollowed: rest.count > 0)
        case .refused(let status, let sentence): refuse(index, connection, .error(status, sentence))
        }
    }

    private func dispatch(_ index: Int, _ connection: HTTPConnection, _ exchange: HTTPExchange, isFollowed: Bool) -> Bool {
        assert(!exchange.isDispatched && connection.exchange === exchange, "request \(exchange.serial) is dispatched twice")
        exchange.isDispatched = true
        exchange.charge = nil
        guard let delegate else { return false }
        let reply = HTTPReply(loop: self.index, exchange: index, serial: exchange.serial)
        var request = exchange.takeRequest()
        let response = delegate.request(request, reply: reply)
        unsafe heads.room.takeBack(&request)
        // The delegate may have answered within the call.
        guard let response, !exchange.isAnswered else { return true }
        let isWrittenAhead = isAlone && !isFollowed && delegate.hasFewWrites
        // Its answer would make the events late, and no other publish shares their writes.
        if isWrittenAhead { delegate.writeAhead() }
        guard answer(index, connection, exchange, response, isFollowed: isFollowed) else { return false }
        if isWrittenAhead { hasAnswersWaiting = false }
        return true
    }

    /// Answers an open exchange. No effect when its connection is gone.
    package func respond(_ reply: HTTPReply, _ response: HTTPResponse) {
        assertOnThread()
        // Serials of two loops repeat each other, so the answer would reach another peer.
        precondition(reply.loop == index, "loop \(index) is to answer a request of loop \(reply.loop)")
        guard let connection = http.connection(of: reply), let exchange = connection.exchange, !exchange.isAnswered else { return }
        guard answer(reply.exchange, connection, exchange, response, isFollowed: false) else { return unsafe end(connection.socket) }
        // The next request is served at the end of this turn, not inside the caller.
        if connection.exchange == nil, !connection.input.isEmpty { resuming.append(reply.exchange) }
    }

    /// Serves requests that waited for the answers of this turn.
    func resumeRequests() {
        while let index = resuming.popLast() {
            guard http.indices.contains(index), let connection = http[index], connection.exchange == nil else { continue }
            if !serveInput(index, connection) { unsafe end(connection.socket) }
        }
    }

    private func answer(
        _ index: Int, _ connection: HTTPConnection, _ exchange: HTTPExchange, _ response: HTTPResponse, isFollowed: Bool
    ) -> Bool {
        assert(exchange.isDispatched && !exchange.isAnswered, "request \(exchange.serial) is answered out of its turn")
        exchange.isAnswered = true
        hasAnswersWaiting = true
        count(response)
        let bytes = HTTPResponseBytes.encode(response, isHead: exchange.isHead, behind: exchange.persistence)
        return begin(bytes, index, connection, exchange, isFollowed: isFollowed)
    }

    func count(_ response: HTTPResponse) {
        unsafe tally.responses[min(max(response.status / 100, 0), tally.responses.count - 1)] += 1
    }

    /// Takes bytes for the peer. False: the socket is dead.
    func write(_ bytes: [UInt8], to socket: SocketPointer) -> Bool {
        unsafe bytes.withUnsafeBytes { unsafe write($0, to: socket) }
    }

    // MARK: Ending

    /// Refuses a request by its head. The connection ends after the answer, because the bytes that follow may be the
    /// body.
    func refuseHead(_ index: Int, _ connection: HTTPConnection, _ response: HTTPResponse) -> Bool {
        count(response)
        let answer = HTTPResponseBytes.encode(response, isHead: false, behind: .ends)
        guard unsafe write(connection.takeGathered(and: answer), to: connection.socket) else { return false }
        sayFarewell(connection)
        return true
    }

    /// Ends the connection after its last answer.
    func sayFarewell(_ connection: HTTPConnection) {
        let socket = unsafe connection.socket
        readOn(connection, true)
        unsafe leave(socket)
        unsafe beginEnding(socket)
    }

    /// Removes a connection from HTTP because it is gone, ends, or was upgraded.
    func leave(_ socket: SocketPointer) {
        let doorPlusOne = unsafe socket.pointee.doorPlusOne
        guard doorPlusOne != 0, let connection = http[Int(doorPlusOne) - 1] else { return }
        assert(unsafe connection.socket == socket, "HTTP connection \(doorPlusOne - 1) has another socket")
        unsafe socket.pointee.doorPlusOne = 0
        endExchange(connection)
        http.remove(Int(doorPlusOne) - 1)
    }

    /// Ends the current request.
    func endExchange(_ connection: HTTPConnection) {
        guard let exchange = connection.exchange else { return }
        queuedMemory.bytes -= exchange.pending?.bytes.count ?? 0
        unsafe uncountForwarded(connection.socket, exchange)
        connection.exchange = nil
        exchange.end()
        http.giveBack(exchange)
    }
}

extension HTTPResponse {
    /// The address has reached its limit of connections.
    fileprivate static var tooManyConnections: HTTPResponse {
        var response = HTTPResponse.error(429, "too many connections from this address: end others first, or use them for more requests")
        response.headers = [("Retry-After", "1")]
        return response
    }
}
