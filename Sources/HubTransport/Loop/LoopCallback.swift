internal import CLibWebSockets
internal import HubCore

/// libwebsockets' callback for every reason: finds the loop and forwards the call.
///
/// One thread serves a context, and the library calls back on that thread only. The loop is the context's user pointer,
/// borrowed: the loop destroys the context, so it outlives every call. Connections have the library's raw role. The
/// library reads and writes bytes, with or without TLS, and `HubWire` gives them a meaning.
let loopCallback:
    @convention(c) (
        OpaquePointer?, lws_callback_reasons, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, Int
    ) -> Int32 = { wsi, reason, session, input, count in
        guard let wsi = unsafe wsi, let context = unsafe lws_get_context(wsi), let user = unsafe lws_context_user(context) else {
            return 0
        }
        let loop = unsafe Unmanaged<Loop>.fromOpaque(user).takeUnretainedValue()
        loop.turnBegins()
        switch reason {
        case LWS_CALLBACK_WSI_CREATE: loop.descriptorTaken()
        case LWS_CALLBACK_WSI_DESTROY: unsafe loop.descriptorEnded(wsi)
        // In this call only, the session pointer is the new TLS context.
        case LWS_CALLBACK_OPENSSL_LOAD_EXTRA_SERVER_VERIFY_CERTS:
            if let session = unsafe session { return unsafe loop.native.configureTLS(OpaquePointer(session)) ? 0 : -1 }
        default: break
        }
        guard let session = unsafe session?.assumingMemoryBound(to: LoopSession.self) else { return 0 }
        switch reason {
        case LWS_CALLBACK_RAW_RX:
            return unsafe loop.received(wsi, session, UnsafeMutableRawBufferPointer(start: input, count: input == nil ? 0 : count)) ? 0 : -1
        case LWS_CALLBACK_RAW_WRITEABLE: return unsafe loop.writable(wsi, session) ? 0 : -1
        case LWS_CALLBACK_RAW_CLOSE:
            unsafe loop.closed(wsi, session)
            return 0
        default: return 0
        }
    }

/// Our data in each of libwebsockets' connections. All zero when new.
struct LoopSession {
    /// Slot in the connection table, plus one; 0 before the upgrade is complete.
    var slotPlusOne: UInt32
    /// Index of the HTTP connection, plus one; 0 before its first byte, and once it is upgraded.
    var doorPlusOne: UInt32
    /// The connection is ending, and incoming bytes are discarded.
    var isEnding: Bool
}

/// Dispatch of a connection's events by its state: HTTP, WebSocket, or ending.
extension Loop {
    /// False: the connection ends at once.
    func received(_ wsi: OpaquePointer, _ session: UnsafeMutablePointer<LoopSession>, _ bytes: UnsafeMutableRawBufferPointer) -> Bool {
        if unsafe session.pointee.isEnding {
            unsafe goesOnSending(wsi)
            return true
        }
        if let slot = unsafe slot(of: session) { return unsafe receivedFrames(slot, bytes) }
        return unsafe receivedRequests(wsi, session, UnsafeRawBufferPointer(bytes))
    }

    /// The socket may take more. The library also calls without need.
    func writable(_ wsi: OpaquePointer, _ session: UnsafeMutablePointer<LoopSession>) -> Bool {
        if unsafe session.pointee.isEnding {
            unsafe finishSending(wsi)
            return true
        }
        if let slot = unsafe slot(of: session) { return unsafe writable(slot, wsi) }
        return unsafe answerWritable(session)
    }

    func closed(_ wsi: OpaquePointer, _ session: UnsafeMutablePointer<LoopSession>) {
        let ending = endings.removeValue(forKey: UInt(bitPattern: wsi))
        assert(unsafe session.pointee.isEnding == (ending != nil), "a connection ends with and without a deadline")
        unsafe leave(session)
        unsafe closed(session)
        guard unsafe tandem_lws_plain_descriptor(wsi) >= 0 else { return }
        if unsafe closing.isEmpty { native.closeDescriptorsSoon() }
        unsafe closing.append(wsi)
    }

    func slot(of session: UnsafeMutablePointer<LoopSession>) -> UInt32? {
        let slotPlusOne = unsafe session.pointee.slotPlusOne
        assert(Int(slotPlusOne) <= table.capacity, "a session has slot \(slotPlusOne) of \(table.capacity), plus one")
        return slotPlusOne == 0 ? nil : slotPlusOne - 1
    }
}
