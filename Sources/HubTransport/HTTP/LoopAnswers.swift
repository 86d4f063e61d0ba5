internal import CLibWebSockets
internal import HubCore
internal import HubWire

/// The rest of an answer that its reader has not taken.
struct PendingAnswer {
    let bytes: [UInt8]
    var sent: Int
    /// The tick at which the next piece has to be taken.
    var deadline: UInt32
}

/// Answers, written a piece at a time, so that it is known how much of each is still unread: it counts as what waits for sockets does
/// (`LoopOptions.sendQueueBytesTotalMax`), and a reader that takes no piece within `requestTimeoutSeconds` is cut off.
extension Loop {
    /// Begins an answer. False: the connection ends.
    func begin(_ bytes: [UInt8], _ index: Int, _ connection: HTTPConnection, _ exchange: HTTPExchange) -> Bool {
        guard let sent = unsafe writePieces(bytes, from: 0, connection.wsi) else { return false }
        if sent == bytes.count, unsafe lws_partial_buffered(connection.wsi) == 0 { return conclude(connection, exchange) }
        guard queuedMemory.bytes + bytes.count <= options.sendQueueBytesTotalMax else { return false }
        queuedMemory.bytes += bytes.count
        exchange.pending = PendingAnswer(bytes: bytes, sent: sent, deadline: bodyDeadline)
        unsafe lws_callback_on_writable(connection.wsi)
        return true
    }

    /// The reader may have taken something. False: the connection ends.
    func answerWritable(_ session: UnsafeMutablePointer<LoopSession>) -> Bool {
        let doorPlusOne = unsafe Int(session.pointee.doorPlusOne)
        guard doorPlusOne != 0, let connection = http[doorPlusOne - 1] else { return true }
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

    /// Writes pieces until the kernel takes one in part only; the library keeps its rest. Returns how far; nil: the socket is dead.
    private func writePieces(_ bytes: [UInt8], from start: Int, _ wsi: OpaquePointer) -> Int? {
        unsafe bytes.withUnsafeBytes { bytes in
            var sent = start
            while sent < bytes.count, unsafe lws_partial_buffered(wsi) == 0 {
                let count = min(bytes.count - sent, LoopOptions.answerPieceBytes)
                guard unsafe Int(tandem_lws_write_raw(wsi, bytes.baseAddress.map { unsafe $0 + sent }, count)) == count else { return nil }
                sent += count
            }
            return sent
        }
    }

    /// All of it is the kernel's: the connection goes on with its next request, or ends.
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

    /// Cuts off whoever has not taken a piece in time. Once a tick.
    func cutOffIdleReaders() {
        for index in http.indices {
            guard let connection = http[index], let pending = connection.exchange?.pending, isPast(pending.deadline) else { continue }
            unsafe end(connection.wsi)
        }
    }
}
