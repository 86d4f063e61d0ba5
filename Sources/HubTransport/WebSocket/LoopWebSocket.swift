internal import CLibWebSockets
package import HubCore
internal import HubWire

/// WebSocket connections: from the upgrade to the last frame (RFC 6455).
extension Loop {
    /// Turns the connection into a WebSocket. False: the table is full.
    func upgraded(_ socket: SocketPointer) -> Bool {
        let descriptor = unsafe socket.pointee.tls == nil ? socket.pointee.descriptor : -1
        guard let slot = unsafe table.insert(socket, descriptor: descriptor, tick: tick) else { return false }
        // A connection must not begin with its slot's former frames, which are another peer's.
        precondition(queues[slot] == nil && !assemblies.holds(slot), "slot \(slot) begins with another connection's bytes")
        assert(unsafe socket.pointee.slotPlusOne == 0, "a connection is upgraded twice")
        unsafe socket.pointee.slotPlusOne = slot + 1
        unsafe tally.opened += 1
        // The count of HTTP connections ends here; the engine counts the WebSocket from now on.
        unsafe uncountConnection(socket)
        return true
    }

    /// Answers the handshake, and has the delegate greet the connection. Without TLS both leave in one packet. False: the socket is dead.
    func greet(_ slot: UInt32, _ socket: SocketPointer, _ answer: [UInt8], _ head: RequestHead, key: String) -> Bool {
        let state = unsafe table.base + Int(slot)
        let (descriptor, generation, deliveries) = unsafe (state.pointee.descriptor, state.pointee.generation, tally.deliveries)
        guard descriptor >= 0 else {
            guard unsafe write(answer, to: socket) else { return false }
            announce(slot, head, key: key)
            return true
        }
        // A request is served when the answer before it is sent. Frames would overtake bytes that wait.
        if unsafe socket.pointee.hasUnsent { return false }
        guard unsafe answer.withUnsafeBytes({ unsafe tandem_send_first(descriptor, $0.baseAddress, $0.count) }) == answer.count else {
            return false
        }
        announce(slot, head, key: key)
        let isGone = unsafe state.pointee.generation != generation || state.pointee.condition == .free
        if !isGone, unsafe tally.deliveries == deliveries { tandem_send_now(descriptor) }
        return true
    }

    private func announce(_ slot: UInt32, _ head: RequestHead, key: String) {
        let request = head.request
        delegate?.connectionOpened(
            id(slot),
            request: UpgradeRequest(
                path: request.path, key: key, query: request.query, origin: request.headers["origin"],
                forwardedFor: request.headers[Self.forwardedFor]))
    }

    /// Takes received bytes. False: the connection ends at once.
    func receivedFrames(_ slot: UInt32, _ bytes: UnsafeMutableRawBufferPointer) -> Bool {
        let state = unsafe table.base + Int(slot)
        assert(unsafe state.pointee.condition != .free, "slot \(slot) receives bytes and is free")
        unsafe state.pointee.lastInboundTick = tick
        guard unsafe !state.pointee.isDeaf else { return true }
        var reader = assemblies.take(slot) ?? FrameReader()
        let generation = unsafe state.pointee.generation
        var input = unsafe bytes
        while let event = unsafe reader.next(&input, messageBytesMax: options.messageBytesMax) {
            unsafe handle(event, slot, state)
            // The delegate or the peer may have closed the connection; further events are dropped then.
            let isOver = unsafe state.pointee.generation != generation || state.pointee.condition == .free || state.pointee.isDeaf
            if isOver { return true }
        }
        keepReader(reader, slot)
        return true
    }

    /// Keeps a reader that holds incomplete frames, under the loop's bound.
    private func keepReader(_ reader: FrameReader, _ slot: UInt32) {
        if reader.isIdle { return }
        if assemblies.bytes + reader.heldBytes > options.assembledBytesMax {
            close(id(slot), code: 4100, reason: "over capacity: too many unfinished messages")
        } else {
            assemblies.keep(reader, slot)
        }
    }

    private func handle(_ event: FrameReader.Event, _ slot: UInt32, _ state: UnsafeMutablePointer<ConnectionState>) {
        // While the connection is closing, only the peer's close frame and violations matter.
        let isClosing = unsafe state.pointee.condition == .closing
        switch event {
        case .close(let payload): unsafe payload.withBytes { unsafe peerCloses(slot, state, $0) }
        case .violation(let violation): unsafe fail(slot, state, violation)
        case _ where isClosing: break
        case .message(let isBinary, let payload):
            unsafe tally.received += 1
            unsafe payload.withBytes { bytes in
                unsafe tally.receivedBytes &+= UInt64(bytes.count)
                if isBinary {
                    unsafe delegate?.connection(id(slot), receivedBinary: bytes)
                } else {
                    unsafe delegate?.connection(id(slot), received: bytes)
                }
            }
        case .fragment: delegate?.connectionReceivedFrame(id(slot))
        case .tooLong: delegate?.connectionReceivedTooMuch(id(slot))
        case .ping(let payload):
            delegate?.connectionReceivedFrame(id(slot))
            guard unsafe state.pointee.condition != .closing else { return }
            send(unsafe payload.withBytes { unsafe [0x8A, UInt8($0.count)] + Array($0) }, to: id(slot))
        case .pong(let payload): unsafe payload.withBytes { unsafe receivedPong(slot, state, $0) }
        }
    }

    private func receivedPong(_ slot: UInt32, _ state: UnsafeMutablePointer<ConnectionState>, _ payload: UnsafeRawBufferPointer) {
        if unsafe payload.first == Self.silenceMark {
            // Each PING of the loop counts one PONG; further ones are reported as plain frames.
            if unsafe state.pointee.pingTick == 0 { delegate?.connectionReceivedFrame(id(slot)) }
            unsafe state.pointee.pingTick = 0
            return
        }
        unsafe delegate?.connection(id(slot), receivedPong: payload)
    }

    // MARK: Closing

    /// Sends a close frame after everything written so far. The connection ends when the peer answers, or within a
    /// second; nothing more is written. `reason` is cut to the 123 bytes that a close frame can hold (RFC 6455, 5.5).
    /// - Parameter farewell: whole frames sent right before the close frame, even with a full send queue.
    package func close(_ connection: ConnectionID, code: UInt16, reason: String, farewell: [UInt8] = []) {
        assertOnThread()
        guard let state = unsafe state(connection), unsafe state.pointee.condition != .closing else { return }
        let slot = UInt32(connection.slot)
        unsafe state.pointee.condition = .closing
        unsafe state.pointee.pingTick = tick
        unsafe writeLast(farewell + CloseFrame.bytes(code: code, reason: reason), slot, state)
        unsafe wheel.arm(slot, in: options.closeAnswerTicks, now: tick, table: table.base)
    }

    /// Answers the peer's close frame with the same code (RFC 6455, 5.5.1). The server then ends the socket.
    private func peerCloses(_ slot: UInt32, _ state: UnsafeMutablePointer<ConnectionState>, _ payload: UnsafeRawBufferPointer) {
        switch unsafe CloseFrame.judge(payload) {
        case .failure(let violation): unsafe fail(slot, state, violation)
        case .valid(let code):
            unsafe state.pointee.isDeaf = true
            if unsafe state.pointee.condition != .closing {
                unsafe state.pointee.peerCloseCode = code
                unsafe state.pointee.condition = .closing
                unsafe state.pointee.pingTick = tick
                unsafe writeLast(CloseFrame.echo(of: code), slot, state)
            }
            unsafe endFrames(slot, state)
        }
    }

    /// Closes with the violation's code, and reads nothing more (RFC 6455, 7.1.7).
    private func fail(_ slot: UInt32, _ state: UnsafeMutablePointer<ConnectionState>, _ violation: Violation) {
        close(id(slot), code: violation.code, reason: violation.reason)
        unsafe state.pointee.isDeaf = true
        unsafe endFrames(slot, state)
    }

    /// Ends a WebSocket after both close frames, or without the peer's. Once pending bytes are written, the connection
    /// leaves the table.
    func endFrames(_ slot: UInt32, _ state: UnsafeMutablePointer<ConnectionState>) {
        guard let socket = unsafe state.pointee.socket else { return }
        unsafe state.pointee.isDeaf = true
        // The rest of a frame is sent first; `writable` calls this again.
        if queues[slot] != nil {
            unsafe wheel.arm(slot, in: options.closeAnswerTicks, now: tick, table: table.base)
            return
        }
        unsafe endWebSocket(socket)
        unsafe beginEnding(socket)
    }

    /// Ends a closing connection whose time is up. A connection that has no room even for the close frame is cut off.
    func closingDue(_ slot: UInt32, _ state: UnsafeMutablePointer<ConnectionState>) {
        let waited = unsafe tick &- state.pointee.pingTick
        // With TLS, a slow reader's last batch may lie with the library, which would drop it with the connection.
        let isUnsent = unsafe state.pointee.socket.map { unsafe hasUnsent($0) } ?? false
        if queues[slot] != nil || isUnsent, waited < options.closeTicksMax {
            unsafe wheel.arm(slot, in: options.closeAnswerTicks, now: tick, table: table.base)
        } else if queues[slot] != nil, let socket = unsafe state.pointee.socket {
            unsafe end(socket)
        } else {
            unsafe endFrames(slot, state)
        }
    }

    /// Removes a connection from the table and reports its end; the socket may still be ending.
    func endWebSocket(_ socket: SocketPointer) {
        guard let slot = unsafe slot(of: socket) else { return }
        assert(unsafe table.base[Int(slot)].socket == socket, "slot \(slot) has another socket")
        unsafe socket.pointee.slotPlusOne = 0
        let connection = id(slot)
        unsafe wheel.disarm(slot, table: table.base)
        dropQueue(slot)
        _ = assemblies.take(slot)
        // Marked before the delegate's call, so that the delegate cannot write to a dead connection.
        let state = unsafe table.base + Int(slot)
        let end: ConnectionEnd =
            if unsafe state.pointee.peerCloseCode != 0 {
                unsafe .closedByPeer(code: state.pointee.peerCloseCode)
            } else if unsafe state.pointee.condition == .closing {
                .closedByServer
            } else {
                .lost
            }
        unsafe state.pointee.condition = .closing
        switch end {
        case .closedByPeer: unsafe tally.closedByPeer += 1
        case .closedByServer: unsafe tally.closedByServer += 1
        case .lost: unsafe tally.lost += 1
        }
        delegate?.connectionClosed(connection, end: end)
        assert(queues[slot] == nil, "something was written to connection \(connection) after its end")
        table.remove(slot)
    }
}
