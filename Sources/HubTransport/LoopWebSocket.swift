internal import CLibWebSockets
internal import HubCore

/// What libwebsockets tells about WebSocket connections. Each returns false to have the connection ended.
extension Loop {
    func established(_ wsi: OpaquePointer, _ session: UnsafeMutablePointer<LoopSession>) -> Bool {
        guard let slot = unsafe table.insert(wsi, descriptor: tandem_lws_plain_descriptor(wsi), tick: tick) else {
            unsafe tandem_lws_close_reason(wsi, 4100, "over capacity", 13)
            return false
        }
        unsafe session.pointee.slotPlusOne = slot + 1
        unsafe tally.opened += 1
        let (path, query) = unsafe (RequestHead.target(wsi)?.path ?? "", RequestHead.query(wsi))
        let origin = unsafe RequestHead.header(wsi, WSI_TOKEN_ORIGIN)
        let forwardedFor = unsafe RequestHead.header(wsi, WSI_TOKEN_X_FORWARDED_FOR)
        // Requests before the upgrade were counted, and the engine counts it from here on.
        unsafe uncountConnection(wsi)
        delegate?.connectionOpened(id(slot), request: UpgradeRequest(path: path, query: query, origin: origin, forwardedFor: forwardedFor))
        return true
    }

    func received(_ wsi: OpaquePointer, _ session: UnsafeMutablePointer<LoopSession>, _ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let slot = unsafe slot(of: session) else { return true }
        unsafe table.base[Int(slot)].lastInboundTick = tick
        unsafe tally.receivedBytes &+= UInt64(bytes.count)
        // Frames that a peer sends behind the error it is being closed for have no meaning any more, and those behind its own close
        // frame none either (RFC 6455, 5.5.1); the library hands them over when they came in the same segment.
        guard unsafe table.base[Int(slot)].condition != .closing, unsafe table.base[Int(slot)].peerCloseCode == 0 else { return true }
        let isFinal = unsafe lws_is_final_fragment(wsi) != 0
        let isFirst = unsafe lws_is_first_fragment(wsi) != 0
        let isBinary = unsafe lws_frame_is_binary(wsi) != 0
        if isFinal { unsafe tally.received += 1 }
        if isFirst, isFinal {
            if isBinary {
                delegate?.connectionReceivedBinary(id(slot))
            } else {
                unsafe delegate?.connection(id(slot), received: bytes)
            }
            return true
        }
        if !isFinal, unsafe lws_remaining_packet_payload(wsi) == 0 {
            delegate?.connectionReceivedFrame(id(slot))
            guard unsafe table.base[Int(slot)].condition != .closing else { return true }
        }
        var buffer = assemblies.take(slot) ?? ReceiveBuffer()
        if isFirst { buffer = ReceiveBuffer(isBinary: isBinary) }
        unsafe buffer.append(bytes, bytesMax: options.messageBytesMax)
        guard isFinal else {
            if buffer.justOverflowed { delegate?.connectionReceivedTooMuch(id(slot)) }
            if assemblies.bytes + buffer.bytes.count > options.assembledBytesMax {
                close(id(slot), code: 4100, reason: "over capacity: too many unfinished messages")
            } else {
                assemblies.keep(buffer, slot)
            }
            return true
        }
        if buffer.isTooLarge {
            if buffer.justOverflowed { delegate?.connectionReceivedTooMuch(id(slot)) }
        } else if buffer.isBinary {
            delegate?.connectionReceivedBinary(id(slot))
        } else {
            unsafe buffer.bytes.withUnsafeBytes { unsafe delegate?.connection(id(slot), received: $0) }
        }
        return true
    }

    func receivedPong(_ session: UnsafeMutablePointer<LoopSession>, _ payload: UnsafeRawBufferPointer) {
        guard let slot = unsafe slot(of: session) else { return }
        unsafe table.base[Int(slot)].lastInboundTick = tick
        guard unsafe table.base[Int(slot)].condition != .closing else { return }
        if unsafe payload.first == Self.probeMark {
            // Each PING of the loop is answered once.
            if unsafe table.base[Int(slot)].pingTick == 0 { delegate?.connectionReceivedFrame(id(slot)) }
            unsafe table.base[Int(slot)].pingTick = 0
            return
        }
        unsafe delegate?.connection(id(slot), receivedPong: payload)
    }

    /// Judges the peer's close frame: a code that RFC 6455, 7.4 does not allow on the wire is answered with 1002.
    func peerCloses(
        _ wsi: OpaquePointer, _ session: UnsafeMutablePointer<LoopSession>, _ payload: UnsafeRawBufferPointer
    ) -> Bool {
        // The answer to our own close frame: the handshake is complete, and the server is the one to end the socket.
        if let slot = unsafe slot(of: session), unsafe table.base[Int(slot)].condition == .closing { return false }
        // No code at all is fine: the library echoes the empty close.
        if unsafe payload.isEmpty {
            unsafe noteClose(session, code: ConnectionState.noCloseCode)
            return true
        }
        var isValid = false
        if payload.count >= 2 {
            let code = unsafe UInt16(payload[0]) << 8 | UInt16(payload[1])
            let isAllowed = (1000...1003).contains(code) || (1007...1014).contains(code) || (3000...4999).contains(code)
            isValid = unsafe isAllowed && String(validating: payload.dropFirst(2), as: UTF8.self) != nil
            if isValid { unsafe noteClose(session, code: code) }
        }
        if isValid { return true }
        // Written by us, because the library would then wait some seconds for an answer to its own; the peer has closed already.
        if let slot = unsafe slot(of: session) { close(id(slot), code: 1002, reason: "") }
        return false
    }

    private func noteClose(_ session: UnsafeMutablePointer<LoopSession>, code: UInt16) {
        if let slot = unsafe slot(of: session) { unsafe table.base[Int(slot)].peerCloseCode = code }
    }

    func closed(_ session: UnsafeMutablePointer<LoopSession>) {
        guard let slot = unsafe slot(of: session) else { return }
        unsafe session.pointee.slotPlusOne = 0
        let connection = id(slot)
        unsafe wheel.disarm(slot, table: table.base)
        dropQueue(slot)
        _ = assemblies.take(slot)
        // Closed before the delegate hears of it, so that nothing it does can write to a dead connection.
        let state = unsafe table.base + Int(slot)
        let end: ConnectionEnd =
            if unsafe state.pointee.condition == .closing {
                .closedByServer
            } else if unsafe state.pointee.peerCloseCode != 0 {
                unsafe .closedByPeer(code: state.pointee.peerCloseCode)
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
        table.remove(slot)
    }

    func slot(of session: UnsafeMutablePointer<LoopSession>) -> UInt32? {
        let slotPlusOne = unsafe session.pointee.slotPlusOne
        return slotPlusOne == 0 ? nil : slotPlusOne - 1
    }
}
