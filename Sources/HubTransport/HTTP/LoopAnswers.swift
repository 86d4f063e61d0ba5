internal import CLibWebSockets
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
    func begin(_ bytes: [UInt8], _ index: Int, _ connection: HTTPConnection, _ exchange: HTTPExchange) -> Bool {
        assert(exchange.pending == nil && connection.exchange === exchange, "request \(exchange.serial) has an answer already")
        guard let sent = unsafe writePieces(bytes, from: 0, connection.wsi) else { return false }
        if sent == bytes.count, unsafe lws_partial_buffered(connection.wsi) == 0 { return conclude(connection, exchange) }
        guard queuedMemory.bytes + bytes.count <= options.sendQueueBytesTotalMax else { return false }
        queuedMemory.bytes += bytes.count
        exchange.pending = PendingAnswer(bytes: bytes, sent: sent, deadline: bodyDeadline)
        unsafe lws_callback_on_writable(connection.wsi)
        return true
    }

    /// Continues an answer when the socket takes more. False: the connection ends.
    func answerWritable(_ session: UnsafeMutablePointer<LoopSession>) -> Bool {
        let doorPlusOne = unsafe Int(session.pointee.doorPlusOne)
        guard doorPlusOne != 0, let connection = http[doorPlusOne - 1] else { return true }
        assert(unsafe connection.session == session, "HTTP connection \(doorPlusOne - 1) has another session")
        guard let exchange = connection.exchange, let pending = exchange.pending else { return true }
        if unsafe lws_partial_buffered(connection.wsi) == 0 {
            guard let sent = unsafe writePieces(pending.bytes, from: pending.sent, connection.wsi) else { return false }
            if sent == pending.bytes.count, unsafe lws_partial_buffered(connection.wsi) == 0 {
                guard conclude(connection, exchange) else { return false }
                return http[doorPlusOne - 1] !== connection || connection.input.isEmpty || serveInput(doorPlusOne - 1, connection)
            }
            exchange.pending?.sent = sent
            exchange.pending?.deadline = bodyDeadline
        }
        unsafe lws_callback_on_writable(connection.wsi)
        return true
    }

    /// Writes pieces until the kernel takes one only in part, of which the library keeps the rest. Returns the bytes
    /// handed over; nil when the socket is dead.
    private func writePieces(_ bytes: [UInt8], from start: Int, _ wsi: OpaquePointer) -> Int? {
        assert(start >= 0 && start <= bytes.count, "an answer of \(bytes.count) bytes goes on at \(start)")
        return unsafe bytes.withUnsafeBytes { bytes in
            var sent = start
            while sent < bytes.count, unsafe lws_partial_buffered(wsi) == 0 {
                let count = min(bytes.count - sent, LoopOptions.answerPieceBytes)
                guard unsafe Int(tandem_lws_write_raw(wsi, bytes.baseAddress.map { unsafe $0 + sent }, count)) == count else { return nil }
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
            unsafe end(connection.wsi)
        }
    }
}
