internal import CLibWebSockets
internal import Glibc
package import HubCore

/// Writing to WebSocket connections: straight to the socket where nothing is in the way, by the library where something is.
///
/// A write to a plain connection goes past the library when it holds nothing for that socket (`lws_partial_buffered`) and nothing waits in
/// a queue. What keeps that safe: both sides write on this thread only; of a frame that the kernel takes in part the rest is given to the
/// library at once, and the library drains what it holds before it sends anything else, so that no PONG gets into the frame; whole frames
/// behind it wait in the connection's `SendQueue`. A PONG of the library's own that is taken in part is in its buffer, too, and is waited
/// for. Through TLS everything is the library's. `RawWriteTests` proves both.
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
            guard unsafe state.pointee.condition == .open, unsafe lws_partial_buffered(state.pointee.wsi) == 0 else {
                unsafe queue(&delivery, from: 0, for: slot, state)
                queued += 1
                continue
            }
            if unsafe state.pointee.descriptor >= 0 {
                let sent = unsafe tandem_send(state.pointee.descriptor, start, count)
                if sent != count { unsafe goOn(&delivery, behind: sent, for: slot, state) }
            } else if unsafe writeByLibrary(bytes, state) {
                unsafe noteHeld(count, for: slot, state)
                keepBound(slot)
            } else {
                unsafe fail(state)
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
        guard let end = unsafe finishFrame(of: delivery.bytes, behind: sent, for: slot, state) else { return unsafe fail(state) }
        keepBound(slot)
        if unsafe end < delivery.bytes.count { unsafe queue(&delivery, from: end, for: slot, state) }
    }

    /// Gives the library the rest of the frame that was cut. Returns where the next one begins; nil: the socket is dead.
    private func finishFrame(
        of bytes: UnsafeRawBufferPointer, behind sent: Int, for slot: UInt32, _ state: UnsafeMutablePointer<ConnectionState>
    ) -> Int? {
        guard sent >= 0 || [EAGAIN, EWOULDBLOCK, EINTR].contains(Int32(-sent)) else { return nil }
        unsafe tally.cutWrites += 1
        let taken = max(0, sent)
        let end = unsafe Frame.boundary(in: bytes, atOrBehind: taken)
        if end == taken { return end }
        let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[taken..<end])
        guard unsafe writeByLibrary(rest, state) else { return nil }
        unsafe noteHeld(rest.count, for: slot, state)
        return end
    }

    /// False: the library refused; the socket is dead.
    private func writeByLibrary(_ bytes: UnsafeRawBufferPointer, _ state: UnsafeMutablePointer<ConnectionState>) -> Bool {
        unsafe Int(tandem_lws_write_raw(state.pointee.wsi, bytes.baseAddress, bytes.count)) >= bytes.count
    }

    /// After a write by the library of so many bytes: whatever it could not send is memory of a connection that is behind.
    private func noteHeld(_ count: Int, for slot: UInt32, _ state: UnsafeMutablePointer<ConnectionState>) {
        guard unsafe lws_partial_buffered(state.pointee.wsi) != 0 else { return }
        changeQueue(slot) { $0.heldBytes = count }
        unsafe state.pointee.condition = .behind
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

    /// The library has taken the rest of a frame, however long it is: somebody may have to go for it.
    private func keepBound(_ slot: UInt32) {
        if queuedMemory.bytes > options.sendQueueBytesTotalMax, !makeRoom(0, for: slot) { giveUp(slot) }
    }

    /// A slow consumer goes: what waits for it is dropped.
    private func giveUp(_ slot: UInt32) {
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

    /// Goes on with what waits for this connection; the library calls also without need, and "nothing waits" is normal.
    func writable(_ wsi: OpaquePointer, _ session: UnsafeMutablePointer<LoopSession>) -> Bool {
        guard let slot = unsafe slot(of: session) else { return true }
        let state = unsafe table.base + Int(slot)
        guard unsafe state.pointee.condition == .behind else { return true }
        if unsafe lws_partial_buffered(wsi) == 0 {
            changeQueue(slot) { $0.heldBytes = 0 }
            while unsafe lws_partial_buffered(wsi) == 0, let piece = changeQueue(slot, { $0.popFirst() }) {
                guard let end = unsafe write(piece, for: slot, state) else { return false }
                if end < piece.end {
                    var rest = piece
                    rest.start = end
                    changeQueue(slot) { $0.putBack(rest) }
                    break
                }
            }
            if queues[slot]?.ownBytes == 0 {
                dropQueue(slot)
                unsafe state.pointee.condition = .open
                return true
            }
        }
        unsafe lws_callback_on_writable(wsi)
        return true
    }

    /// Writes a run of frames. Returns how far, which is where a frame of its batch begins; nil: the socket is dead.
    private func write(_ piece: SendQueue.Piece, for slot: UInt32, _ state: UnsafeMutablePointer<ConnectionState>) -> Int? {
        let bytes = unsafe UnsafeRawBufferPointer(rebasing: piece.batch.bytes[piece.start..<piece.end])
        if unsafe state.pointee.descriptor < 0 {
            guard unsafe writeByLibrary(bytes, state) else { return nil }
            unsafe noteHeld(bytes.count, for: slot, state)
            return piece.end
        }
        let sent = unsafe tandem_send(state.pointee.descriptor, bytes.baseAddress, bytes.count)
        if sent == bytes.count { return piece.end }
        return unsafe finishFrame(of: bytes, behind: sent, for: slot, state).map { piece.start + $0 }
    }

    // MARK: Ending

    /// Ends an HTTP connection.
    func end(_ wsi: OpaquePointer) {
        unsafe tandem_lws_kill(wsi)
        hasNewTimeouts = true
    }

    /// A write failed: the socket is dead, and the library closes it on its next round.
    private func fail(_ state: UnsafeMutablePointer<ConnectionState>) {
        unsafe state.pointee.condition = .closing
        unsafe tandem_lws_kill(state.pointee.wsi)
        hasNewTimeouts = true
    }

    /// Sends a close frame with code and reason behind everything written so far, and ends the connection when the peer has
    /// answered it or after `LoopOptions.closeSeconds`. Nothing more is written to it. `reason` is cut to the 123 bytes
    /// that a close frame can hold (RFC 6455, 5.5).
    ///
    /// The frame is ours, not the library's: 4.1.6 drops its own when the closing begins in a writable callback.
    /// - Parameter farewell: whole frames that go right before the close frame, also past a full send queue.
    package func close(_ connection: ConnectionID, code: UInt16, reason: String, farewell: [UInt8] = []) {
        assertOnThread()
        guard let state = unsafe state(connection), unsafe state.pointee.condition != .closing else { return }
        unsafe state.pointee.condition = .closing
        dropQueue(UInt32(connection.slot))
        var text = reason
        while text.utf8.count > 123 { text.removeLast() }
        let frame = farewell + [0x88, UInt8(2 + text.utf8.count), UInt8(code >> 8), UInt8(code & 0xFF)] + Array(text.utf8)
        unsafe frame.withUnsafeBytes { unsafe _ = writeByLibrary($0, state) }
        unsafe tandem_lws_close_timeout(state.pointee.wsi, LoopOptions.closeSeconds)
        hasNewTimeouts = true
    }
}
