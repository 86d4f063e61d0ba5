internal import CLibWebSockets
internal import Glibc
package import HubCore

/// Writing to WebSocket connections: straight to the socket where there is no TLS, by the library where there is.
///
/// All bytes of a connection are ours, so nothing of the library's can get between them. What the kernel does not take of a write waits in
/// the connection's `SendQueue`: the rest of the frame that was cut as bytes of its own, whole frames behind it as references to one copy.
/// Through TLS the library keeps the rest of a write, because OpenSSL wants it again as it was. `RawWriteTests` proves both.
extension Loop {
    /// Writes joined frames to every subscriber of one channel: the fan-out loop.
    ///
    /// `bytes` are whole WebSocket frames and belong to the caller; whoever cannot take them now shares one copy. `slots` are
    /// slots of open connections of this loop. Per delivery: no allocation, no reference counting, no lock, one write.
    /// - Parameter latestOnly: which of the frames a newer one of their line makes needless, in order.
    package func deliver(
        _ bytes: UnsafeRawBufferPointer, to slots: UnsafeBufferPointer<UInt32>,
        latestOnly: UnsafeBufferPointer<LatestOnlyFrame> = unsafe UnsafeBufferPointer(start: nil, count: 0)
    ) {
        assertOnThread()
        let base = unsafe connections
        let start = bytes.baseAddress
        let count = bytes.count
        var delivery = unsafe Delivery(bytes: bytes, latestOnly: latestOnly)
        var queued = 0
        for unsafe slot in unsafe slots {
            let state = unsafe base + Int(slot)
            guard unsafe state.pointee.condition == .open else {
                unsafe queue(&delivery, from: 0, for: slot, state)
                queued += 1
                continue
            }
            if unsafe state.pointee.descriptor >= 0 {
                let sent = unsafe tandem_send(state.pointee.descriptor, start, count)
                if sent != count { unsafe goOn(&delivery, behind: sent, for: slot, state) }
            } else {
                unsafe writeThroughTLS(bytes, slot, state)
            }
        }
        unsafe tally.delivered(slots.count, queued: queued, bytes: count)
    }

    /// Writes whole frames to one connection, behind everything sent to it before. Nothing happens when it is gone.
    /// - Parameter isList: one frame that may be longer than what may wait for a connection; one such may wait for it at a time.
    package func send(_ frames: [UInt8], to connection: ConnectionID, isList: Bool = false) {
        assertOnThread()
        guard let state = unsafe state(connection) else { return }
        var slot = UInt32(connection.slot)
        unsafe frames.withUnsafeBytes { bytes in
            if isList, unsafe state.pointee.condition == .behind {
                var delivery = unsafe Delivery(bytes: bytes, latestOnly: UnsafeBufferPointer(start: nil, count: 0), isList: true)
                return unsafe queue(&delivery, from: 0, for: slot, state)
            }
            unsafe withUnsafePointer(to: &slot) { slot in
                unsafe deliver(bytes, to: UnsafeBufferPointer(start: slot, count: 1))
            }
        }
    }

    /// What one call of `deliver` hands out; the copy is made for the first who has to wait.
    @safe struct Delivery {
        let bytes: UnsafeRawBufferPointer
        let latestOnly: UnsafeBufferPointer<LatestOnlyFrame>
        var isList = false
        var batch: Batch?
    }

    /// The kernel took only part of a write, or nothing (`sent` is an errno then).
    private func goOn(
        _ delivery: inout Delivery, behind sent: Int, for slot: UInt32, _ state: UnsafeMutablePointer<ConnectionState>
    ) {
        guard let end = unsafe keepRest(of: delivery.bytes, behind: sent, for: slot, state) else { return unsafe fail(state) }
        keepBound(slot)
        if unsafe end < delivery.bytes.count { unsafe queue(&delivery, from: end, for: slot, state) }
    }

    /// Keeps the rest of the frame that was cut. Returns where the next one begins; nil: the socket is dead.
    private func keepRest(
        of bytes: UnsafeRawBufferPointer, behind sent: Int, for slot: UInt32, _ state: UnsafeMutablePointer<ConnectionState>
    ) -> Int? {
        guard sent >= 0 || Self.isFull(sent) else { return nil }
        unsafe tally.cutWrites += 1
        let taken = max(0, sent)
        let end = unsafe Frame.boundary(in: bytes, atOrBehind: taken)
        if end > taken { unsafe hold(Array(bytes[taken..<end]), slot, state) }
        return end
    }

    private static func isFull(_ sent: Int) -> Bool { [EAGAIN, EWOULDBLOCK, EINTR].contains(Int32(-sent)) }

    /// The bytes go before everything else that is to be sent.
    private func hold(_ rest: [UInt8], _ slot: UInt32, _ state: UnsafeMutablePointer<ConnectionState>) {
        changeQueue(slot) { $0.held = rest }
        if unsafe state.pointee.condition == .open { unsafe state.pointee.condition = .behind }
        unsafe lws_callback_on_writable(state.pointee.wsi)
    }

    private func writeThroughTLS(_ bytes: UnsafeRawBufferPointer, _ slot: UInt32, _ state: UnsafeMutablePointer<ConnectionState>) {
        guard unsafe writeByLibrary(bytes, state) else { return unsafe fail(state) }
        unsafe noteHeld(bytes.count, for: slot, state)
        keepBound(slot)
    }

    /// False: the library refused; the socket is dead.
    private func writeByLibrary(_ bytes: UnsafeRawBufferPointer, _ state: UnsafeMutablePointer<ConnectionState>) -> Bool {
        unsafe Int(tandem_lws_write_raw(state.pointee.wsi, bytes.baseAddress, bytes.count)) >= bytes.count
    }

    /// After a write by the library of so many bytes: whatever it could not send is memory of a connection that is behind.
    private func noteHeld(_ count: Int, for slot: UInt32, _ state: UnsafeMutablePointer<ConnectionState>) {
        guard unsafe lws_partial_buffered(state.pointee.wsi) != 0 else { return }
        changeQueue(slot) { $0.libraryBytes = count }
        if unsafe state.pointee.condition == .open { unsafe state.pointee.condition = .behind }
        unsafe lws_callback_on_writable(state.pointee.wsi)
    }

    /// The slow way: the connection has not taken all of an earlier write yet.
    private func queue(
        _ delivery: inout Delivery, from start: Int, for slot: UInt32, _ state: UnsafeMutablePointer<ConnectionState>
    ) {
        guard unsafe state.pointee.condition == .open || state.pointee.condition == .behind else { return }
        let needed = unsafe (delivery.batch == nil ? delivery.bytes.count : 0) + SendQueue.pieceBytes
        guard makeRoom(needed, for: slot) else { return giveUp(slot) }
        let batch = unsafe delivery.batch ?? Batch(copying: delivery.bytes, latestOnly: delivery.latestOnly, memory: queuedMemory)
        delivery.batch = batch
        if changeQueue(slot, { $0.append(batch, from: start, queuedBytesMax: options.sendQueueBytesMax, isList: delivery.isList) }) {
            unsafe state.pointee.condition = .behind
            unsafe lws_callback_on_writable(state.pointee.wsi)
        } else {
            giveUp(slot)
        }
    }

    /// Closes those who are furthest behind until so many bytes fit under the loop's bound. False: the one that asks is among them.
    private func makeRoom(_ needed: Int, for slot: UInt32) -> Bool {
        while queuedMemory.bytes + needed > options.sendQueueBytesTotalMax {
            guard let furthest = laggards.furthest(), furthest.rank > Laggards.rank(queues[slot]?.bytesBehind ?? 0) else { return false }
            giveUp(furthest.slot)
        }
        return true
    }

    /// The rest of a frame waits, however long it is: somebody may have to go for it.
    private func keepBound(_ slot: UInt32) {
        while queuedMemory.bytes > options.sendQueueBytesTotalMax, queues[slot] != nil, !makeRoom(0, for: slot) { giveUp(slot) }
    }

    /// A slow consumer is closed with 4100. Its queue is dropped, but for the rest of the frame that was cut, which goes before the close frame.
    /// A second call finds it closing: then that rest is dropped as well, and the connection ends without another word.
    private func giveUp(_ slot: UInt32) {
        let state = unsafe table.base + Int(slot)
        guard unsafe state.pointee.condition != .closing else {
            dropQueue(slot)
            return unsafe fail(state)
        }
        unsafe tally.slowConsumers += 1
        let connection = id(slot)
        delegate?.connectionIsSlow(connection)
        close(connection, code: 4100, reason: "send queue full: read faster or reconnect later")
    }

    @discardableResult
    private func changeQueue<Result>(_ slot: UInt32, _ change: (inout SendQueue) -> Result) -> Result {
        let (memory, bytes) = queues[slot].map { ($0.ownBytes, $0.bytesBehind) } ?? (0, 0)
        let result = change(&queues[slot, default: SendQueue()])
        guard let queue = queues[slot] else { return result }
        queuedMemory.bytes += queue.ownBytes - memory
        laggards.move(slot, from: bytes, to: queue.bytesBehind)
        return result
    }

    func dropQueue(_ slot: UInt32) {
        guard let queue = queues.removeValue(forKey: slot) else { return }
        queuedMemory.bytes -= queue.ownBytes
        laggards.move(slot, from: queue.bytesBehind, to: 0)
    }

    /// Goes on with what waits for this connection; the library calls also without need, and "nothing waits" is normal. False: the socket
    /// is dead.
    func writable(_ slot: UInt32, _ wsi: OpaquePointer) -> Bool {
        let state = unsafe table.base + Int(slot)
        guard queues[slot] != nil else { return true }
        guard unsafe state.pointee.descriptor < 0 ? drainThroughTLS(slot, wsi, state) : drain(slot, state) else { return false }
        if queues[slot]?.isSpent != true {
            unsafe lws_callback_on_writable(wsi)
            return true
        }
        dropQueue(slot)
        if unsafe state.pointee.condition == .behind { unsafe state.pointee.condition = .open }
        if unsafe state.pointee.isDeaf { unsafe endFrames(slot, state) }
        return true
    }

    /// Writes until the kernel is full. False: the socket is dead.
    private func drain(_ slot: UInt32, _ state: UnsafeMutablePointer<ConnectionState>) -> Bool {
        if let held = queues[slot]?.held, !held.isEmpty {
            let sent = unsafe held.withUnsafeBytes { unsafe tandem_send(state.pointee.descriptor, $0.baseAddress, $0.count) }
            guard sent >= 0 || Self.isFull(sent) else { return false }
            changeQueue(slot) { $0.held = Array(held[max(0, sent)...]) }
            if sent != held.count { return true }
        }
        while let piece = changeQueue(slot, { $0.popFirst() }) {
            let bytes = unsafe UnsafeRawBufferPointer(rebasing: piece.batch.bytes[piece.start..<piece.end])
            let sent = unsafe tandem_send(state.pointee.descriptor, bytes.baseAddress, bytes.count)
            if sent == bytes.count { continue }
            guard let end = unsafe keepRest(of: bytes, behind: sent, for: slot, state) else { return false }
            if piece.start + end < piece.end {
                var rest = piece
                rest.start += end
                changeQueue(slot) { $0.putBack(rest) }
            }
            return true
        }
        return true
    }

    private func drainThroughTLS(_ slot: UInt32, _ wsi: OpaquePointer, _ state: UnsafeMutablePointer<ConnectionState>) -> Bool {
        while unsafe lws_partial_buffered(wsi) == 0 {
            changeQueue(slot) { $0.libraryBytes = 0 }
            guard let piece = changeQueue(slot, { $0.popFirst() }) else { break }
            let bytes = unsafe UnsafeRawBufferPointer(rebasing: piece.batch.bytes[piece.start..<piece.end])
            guard unsafe writeByLibrary(bytes, state) else { return false }
            unsafe noteHeld(bytes.count, for: slot, state)
        }
        return true
    }

    // MARK: Ending

    /// A write failed: the socket is dead, and the library closes it on its next round.
    private func fail(_ state: UnsafeMutablePointer<ConnectionState>) {
        unsafe state.pointee.condition = .closing
        if let wsi = unsafe state.pointee.wsi { unsafe end(wsi) }
    }

    /// The last bytes of a connection: behind the rest of a frame that is cut, and instead of everything else that waits.
    func writeLast(_ bytes: [UInt8], _ slot: UInt32, _ state: UnsafeMutablePointer<ConnectionState>) {
        let (held, ofLibrary) = queues[slot].map { ($0.held, $0.libraryBytes) } ?? ([], 0)
        dropQueue(slot)
        if unsafe state.pointee.descriptor < 0 {
            let isTaken = unsafe bytes.withUnsafeBytes { unsafe writeByLibrary($0, state) }
            if isTaken { unsafe noteHeld(ofLibrary + bytes.count, for: slot, state) }
            return
        }
        if !held.isEmpty { return unsafe hold(held + bytes, slot, state) }
        let sent = unsafe bytes.withUnsafeBytes { unsafe tandem_send(state.pointee.descriptor, $0.baseAddress, $0.count) }
        // On a dead socket nothing waits; the library notices its end.
        if sent != bytes.count, sent >= 0 || Self.isFull(sent) { unsafe hold(Array(bytes[max(0, sent)...]), slot, state) }
    }
}
