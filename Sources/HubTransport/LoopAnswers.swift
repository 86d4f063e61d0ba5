internal import CLibWebSockets
internal import HubCore

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
    func begin(_ bytes: [UInt8], _ index: Int, _ session: UnsafeMutablePointer<LoopSession>, _ wsi: OpaquePointer) -> Bool {
        guard let sent = unsafe writePieces(bytes, from: 0, wsi) else { return false }
        if sent == bytes.count, unsafe lws_partial_buffered(wsi) == 0 { return unsafe conclude(index, session, wsi) }
        guard queuedMemory.bytes + bytes.count <= options.sendQueueBytesTotalMax, let exchange = exchanges[index] else { return false }
        queuedMemory.bytes += bytes.count
        exchange.pending = PendingAnswer(bytes: bytes, sent: sent, deadline: bodyDeadline)
        // Ours is the time-out now.
        unsafe tandem_lws_no_timeout(wsi)
        unsafe lws_callback_on_writable(wsi)
        return true
    }

    /// The reader may have taken something. False: the connection ends.
    func goOn(_ pending: PendingAnswer, _ index: Int, _ session: UnsafeMutablePointer<LoopSession>, _ wsi: OpaquePointer) -> Bool {
        if unsafe lws_partial_buffered(wsi) == 0 {
            guard let sent = unsafe writePieces(pending.bytes, from: pending.sent, wsi) else { return false }
            if sent == pending.bytes.count, unsafe lws_partial_buffered(wsi) == 0 { return unsafe conclude(index, session, wsi) }
            exchanges[index]?.pending?.sent = sent
            exchanges[index]?.pending?.deadline = bodyDeadline
        }
        unsafe lws_callback_on_writable(wsi)
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
    private func conclude(_ index: Int, _ session: UnsafeMutablePointer<LoopSession>, _ wsi: OpaquePointer) -> Bool {
        let mustClose = exchanges[index]?.mustClose ?? true
        // Before the library hears that the exchange is over, because it then makes a new, zeroed session.
        unsafe exchangeClosed(session)
        return unsafe !mustClose && lws_http_transaction_completed(wsi) == 0
    }

    /// Cuts off whoever has not taken a piece in time. Once a tick.
    func cutOffIdleReaders() {
        for index in exchanges.indices {
            guard let pending = exchanges[index]?.pending, Int32(bitPattern: tick &- pending.deadline) >= 0,
                let wsi = unsafe exchanges.connection(at: index)
            else { continue }
            unsafe end(wsi)
        }
    }
}
