internal import HubCore
internal import HubWire

/// An answer that is not fully sent.
struct PendingAnswer {
    let bytes: [UInt8]
    var sent: Int
    /// The tick by which the next piece must be taken.
    var deadline: UInt32
}

/// Answers are written in pieces, so that the progress of each reader is known. A pending answer counts in full against
/// `LoopOptions.sendQueueBytesTotalMax`. A reader that takes no piece within `requestTimeoutSeconds` is cut off.
extension Loop {
    /// Begins an answer. False: the connection ends.
    /// - Parameter isFollowed: the next request has arrived, and its answer can leave with this one.
    func begin(_ answer: [UInt8], _ index: Int, _ connection: HTTPConnection, _ exchange: HTTPExchange, isFollowed: Bool) -> Bool {
        assert(exchange.pending == nil && connection.exchange === exchange, "request \(exchange.serial) has an answer already")
        if isFollowed, exchange.persistence != .ends, unsafe !hasUnsent(connection.socket), connection.gather(answer) {
            return conclude(connection, exchange)
        }
        let bytes = connection.takeGathered(and: answer)
        guard let sent = unsafe writePieces(bytes, from: 0, connection.socket) else { return false }
        if sent == bytes.count, unsafe !hasUnsent(connection.socket) { return conclude(connection, exchange) }
        guard queuedMemory.bytes + bytes.count <= options.sendQueueBytesTotalMax else { return false }
        queuedMemory.bytes += bytes.count
        exchange.pending = PendingAnswer(bytes: bytes, sent: sent, deadline: bodyDeadline)
        unsafe awaitWritable(connection.socket)
        return true
    }

    /// Sends the answers that have waited for the next ones. False: the socket is dead.
    func sendGathered(_ connection: HTTPConnection) -> Bool {
        if !connection.hasGathered { return true }
        return unsafe write(connection.takeGathered(), to: connection.socket)
    }

    /// Continues an answer when the socket takes more. False: the connection ends.
    func answerWritable(_ socket: SocketPointer) -> Bool {
        let doorPlusOne = unsafe Int(socket.pointee.doorPlusOne)
        guard doorPlusOne != 0, let connection = http[doorPlusOne - 1] else { return true }
        assert(unsafe connection.socket == socket, "HTTP connection \(doorPlusOne - 1) has another socket")
        guard let exchange = connection.exchange else { return connection.input.isEmpty || serveInput(doorPlusOne - 1, connection) }
        guard let pending = exchange.pending else { return true }
        if unsafe !hasUnsent(connection.socket) {
            guard let sent = unsafe writePieces(pending.bytes, from: pending.sent, connection.socket) else { return false }
            if sent == pending.bytes.count, unsafe !hasUnsent(connection.socket) {
                guard conclude(connection, exchange) else { return false }
                return http[doorPlusOne - 1] !== connection || connection.input.isEmpty || serveInput(doorPlusOne - 1, connection)
            }
            exchange.pending?.sent = sent
            exchange.pending?.deadline = bodyDeadline
        }
        unsafe awaitWritable(connection.socket)
        return true
    }

    /// Writes pieces until the kernel takes one only in part, of which the rest is kept. Returns the bytes
    /// handed over; nil when the socket is dead.
    private func writePieces(_ bytes: [UInt8], from start: Int, _ socket: SocketPointer) -> Int? {
        assert(start >= 0 && start <= bytes.count, "an answer of \(bytes.count) bytes goes on at \(start)")
        return unsafe bytes.withUnsafeBytes { bytes in
            var sent = start
            while sent < bytes.count, unsafe !hasUnsent(socket) {
                let count = min(bytes.count - sent, LoopOptions.answerPieceBytes)
                let piece = unsafe UnsafeRawBufferPointer(rebasing: bytes[sent..<sent + count])
                guard unsafe write(piece, to: socket) else { return nil }
                sent += count
            }
            return sent
        }
    }

    /// Ends a fully written answer: the connection continues with its next request, or ends.
    private func conclude(_ connection: HTTPConnection, _ exchange: HTTPExchange) -> Bool {
        endExchange(connection)
        if exchange.persistence == .ends {
            sayFarewell(connection)
        } else {
            connection.deadline = connection.input.isEmpty ? idleDeadline : bodyDeadline
            if connection.input.isEmpty { readOn(connection, true) }
        }
        return true
    }

    /// Cuts off readers that took no piece in time. Once per tick.
    func cutOffIdleReaders() {
        for index in http.indices {
            guard let connection = http[index], let pending = connection.exchange?.pending, isPast(pending.deadline) else { continue }
            unsafe end(connection.socket)
        }
    }
}
