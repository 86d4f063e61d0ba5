internal import CLibWebSockets
internal import Glibc
package import HubCore

/// Writing to WebSocket connections: straight to the socket without TLS, by the library with TLS.
///
/// All bytes of a connection are ours; the library writes none in between. Bytes that the kernel does not take wait in
/// the connection's `SendQueue`. The rest of a cut frame is copied; whole frames after it are references to one copy.
/// With TLS the library keeps the rest of a write, because OpenSSL needs the same bytes again. `RawWriteTests` proves
/// both.
extension Loop {
    /// Writes joined frames to a group of connections: the fan-out loop.
    ///
    /// `bytes` are whole WebSocket frames and belong to the caller; slow connections share one copy. `slots` name open
    /// connections of this loop. Per delivery: no allocation, no reference counting, no lock, one write.
    /// - Parameter latestOnly: the frames that a newer one of the same line replaces, in order.
    package func deliver(
        _ bytes: UnsafeRawBufferPointer, to slots: UnsafeBufferPointer<UInt32>,
        latestOnly: UnsafeBufferPointer<LatestOnlyFrame> = unsafe UnsafeBufferPointer(start: nil, count: 0)
    ) {
        assertOnThread()
        assert(unsafe Frame.areWhole(bytes), "\(bytes.count) bytes to \(slots.count) connections are not whole frames")
        assert(unsafe Self.areInOrder(latestOnly, before: bytes.count), "marks of frames lie outside of \(bytes.count) bytes")
        let base = unsafe connections
        let start = bytes.baseAddress
        let count = bytes.count
        var delivery = unsafe Delivery(bytes: bytes, latestOnly: latestOnly)
        var queued = 0
        for unsafe slot in unsafe slots {
            assert(unsafe Int(slot) < table.capacity && base[Int(slot)].condition != .free, "slot \(slot) gets frames and is free")
            let state = unsafe base + Int(slot)
            guard unsafe state.pointee.condition == .open else {
                unsafe queue(&delivery, from: 0, for: slot, state)
                queued += 1
                continue
            }
            assert(queues[slot] == nil, "slot \(slot) is open, and frames wait for it")
            if unsafe state.pointee.descriptor >= 0 {
                let sent = unsafe tandem_send(state.pointee.descriptor, start, count)
                if sent != count { unsafe goOn(&delivery, behind: sent, for: slot, state) }
            } else {
                unsafe writeThroughTLS(bytes, slot, state)
            }
        }
        unsafe tally.delivered(slots.count, queued: queued, bytes: count)
    }

    private static func areInOrder(_ frames: UnsafeBufferPointer<LatestOnlyFrame>, before end: Int) -> Bool {
        var position = 0
        for unsafe frame in unsafe frames {
            guard frame.start >= position, frame.end <= end else { return false }
            position = frame.end
        }
        return true
    }

    /// Writes whole frames to one connection, after everything sent to it before. No effect when the connection is
    /// gone.
    /// - Parameter isList: one frame that may exceed the bound of the connection's queue; one such frame may wait at a
    ///   time.
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

    /// The bytes of one call of `deliver`; the first slow connection makes the shared copy.
    @safe struct Delivery {
        let bytes: UnsafeRawBufferPointer
        let latestOnly: UnsafeBufferPointer<LatestOnlyFrame>
        var isList = false
        var batch: Batch?
    }

    /// Continues after a cut write. `sent` is a number of bytes, or a negative errno.
    private func goOn(
        _ delivery: inout Delivery, behind sent: Int, for slot: UInt32, _ state: UnsafeMutablePointer<ConnectionState>
    ) {
        guard let end = unsafe keepRest(of: delivery.bytes, behind: sent, for: slot, state) else { return unsafe fail(state) }
        keepBound(slot)
        if unsafe end < delivery.bytes.count { unsafe queue(&delivery, from: end, for: slot, state) }
    }

    /// Keeps the rest of a cut frame. Returns the start of the next frame; nil when the socket is dead.
    private func keepRest(
        of bytes: UnsafeRawBufferPointer, behind sent: Int, for slot: UInt32, _ state: UnsafeMutablePointer<ConnectionState>
    ) -> Int? {
        guard sent >= 0 || Self.isFull(sent) else { return nil }
        unsafe tally.cutWrites += 1
        let taken = max(0, sent)
        let end = unsafe Frame.boundary(in: bytes, atOrBehind: taken)
        assert(end >= taken && end <= bytes.count, "\(taken) of \(bytes.count) bytes were sent, and a frame ends at \(end)")
        if end > taken { unsafe hold(Array(bytes[taken..<end]), slot, state) }
        return end
    }

    /// Holds bytes that go before everything queued.
    private func hold(_ rest: [UInt8], _ slot: UInt32, _ state: UnsafeMutablePointer<ConnectionState>) {
        assert(unsafe state.pointee.descriptor >= 0, "slot \(slot) has TLS, and a rest of a write is held for it here")
        changeQueue(slot) { queue in
            assert(queue.held.isEmpty, "slot \(slot) loses \(queue.held.count) bytes of a cut frame")
            queue.held = rest
        }
        if unsafe state.pointee.condition == .open { unsafe state.pointee.condition = .behind }
        unsafe awaitWritable(state)
    }

    private func writeThroughTLS(_ bytes: UnsafeRawBufferPointer, _ slot: UInt32, _ state: UnsafeMutablePointer<ConnectionState>) {
        guard unsafe writeByLibrary(bytes, state) else { return unsafe fail(state) }
        unsafe noteHeld(bytes.count, for: slot, state)
        keepBound(slot)
    }

    /// Writes by the library. False: the socket is dead.
    private func writeByLibrary(_ bytes: UnsafeRawBufferPointer, _ state: UnsafeMutablePointer<ConnectionState>) -> Bool {
        guard let socket = unsafe state.pointee.socket else { return false }
        return unsafe write(bytes, to: socket)
    }

    /// Marks a connection as slow when the library holds a rest of its last write, of at most `count` bytes.
    private func noteHeld(_ count: Int, for slot: UInt32, _ state: UnsafeMutablePointer<ConnectionState>) {
        guard let socket = unsafe state.pointee.socket, unsafe hasUnsent(socket) else { return }
        changeQueue(slot) { $0.libraryBytes = count }
        if unsafe state.pointee.condition == .open { unsafe state.pointee.condition = .behind }
        unsafe awaitWritable(state)
    }

    /// Queues frames for a slow connection.
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
            unsafe awaitWritable(state)
        } else {
            giveUp(slot)
        }
    }

    /// Closes the connections furthest behind until `needed` bytes fit under the loop's bound. False when `slot` is
    /// among them.
    private func makeRoom(_ needed: Int, for slot: UInt32) -> Bool {
        while queuedMemory.bytes + needed > options.sendQueueBytesTotalMax {
            guard let furthest = laggards.furthest(), furthest.rank > Laggards.rank(queues[slot]?.bytesBehind ?? 0) else { return false }
            assert(
                queues[furthest.slot].map { Laggards.rank($0.bytesBehind) } == furthest.rank,
                "slot \(furthest.slot) is in class \(furthest.rank) and has another queue")
            giveUp(furthest.slot)
        }
        return true
    }

    /// Restores the loop's bound after the rest of a frame was kept, whatever its length.
    private func keepBound(_ slot: UInt32) {
        while queuedMemory.bytes > options.sendQueueBytesTotalMax, queues[slot] != nil, !makeRoom(0, for: slot) { giveUp(slot) }
    }

    /// Closes a slow consumer with 4100. The queue is dropped, except for the rest of a cut frame, which precedes the
    /// close frame. On a connection that is closing already, this rest is dropped as well, and the connection ends at
    /// once.
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

    /// Continues with the connection's queue when the socket may take more. The library also calls without need, so an
    /// empty queue is normal. False: the socket is dead.
    func writable(_ slot: UInt32, _ socket: SocketPointer) -> Bool {
        let state = unsafe table.base + Int(slot)
        guard queues[slot] != nil else { return true }
        guard unsafe state.pointee.descriptor < 0 ? drainThroughTLS(slot, socket, state) : drain(slot, state) else { return false }
        if queues[slot]?.isSpent != true {
            unsafe awaitWritable(socket)
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

    private func drainThroughTLS(_ slot: UInt32, _ socket: SocketPointer, _ state: UnsafeMutablePointer<ConnectionState>) -> Bool {
        while unsafe !hasUnsent(socket) {
            changeQueue(slot) { $0.libraryBytes = 0 }
            guard let piece = changeQueue(slot, { $0.popFirst() }) else { break }
            let bytes = unsafe UnsafeRawBufferPointer(rebasing: piece.batch.bytes[piece.start..<piece.end])
            guard unsafe writeByLibrary(bytes, state) else { return false }
            unsafe noteHeld(bytes.count, for: slot, state)
        }
        return true
    }

    // MARK: Ending

    private func awaitWritable(_ state: UnsafeMutablePointer<ConnectionState>) {
        if let socket = unsafe state.pointee.socket { unsafe awaitWritable(socket) }
    }

    /// Ends a connection whose write failed, in a moment.
    private func fail(_ state: UnsafeMutablePointer<ConnectionState>) {
        unsafe state.pointee.condition = .closing
        if let socket = unsafe state.pointee.socket { unsafe end(socket) }
    }

    /// Writes the last bytes of a connection, after the rest of a cut frame and instead of the queue.
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
        // A dead socket needs no queue; its end is noticed.
        if sent != bytes.count, sent >= 0 || Self.isFull(sent) { unsafe hold(Array(bytes[max(0, sent)...]), slot, state) }
    }
}
