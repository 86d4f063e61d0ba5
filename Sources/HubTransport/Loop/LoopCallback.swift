internal import CLibWebSockets
internal import HubCore

/// The one function libwebsockets calls, for every reason: finds the loop, names the call, returns an integer.
///
/// libwebsockets' contract: a context is served by one thread, and calls back only on it. The loop is the context's user
/// pointer, borrowed: it destroys the context, so it outlives every call. Connections are of the library's raw role: it reads
/// and writes bytes, through TLS where there is TLS, and every byte's meaning is ours (`HubWire`).
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
        // The one call in which the session pointer is something else: the TLS context in the making.
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

/// What libwebsockets keeps for us beside each of its connections. All zero when new.
struct LoopSession {
    /// Slot in the connection table, plus one; 0 before the upgrade is complete.
    var slotPlusOne: UInt32
    /// Index of the HTTP connection, plus one; 0 before its first byte, and once it is upgraded.
    var doorPlusOne: UInt32
    /// The last word is said: what still comes is thrown away.
    var isEnding: Bool
}

/// What comes in on a connection, by what the connection has become.
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

    /// The socket takes more. The library calls also without need.
    func writable(_ wsi: OpaquePointer, _ session: UnsafeMutablePointer<LoopSession>) -> Bool {
        if unsafe session.pointee.isEnding {
            unsafe finishSending(wsi)
            return true
        }
        if let slot = unsafe slot(of: session) { return unsafe writable(slot, wsi) }
        return unsafe answerWritable(session)
    }

    func closed(_ wsi: OpaquePointer, _ session: UnsafeMutablePointer<LoopSession>) {
        if unsafe session.pointee.isEnding { endings[UInt(bitPattern: wsi)] = nil }
        unsafe leave(session)
        unsafe closed(session)
    }

    func slot(of session: UnsafeMutablePointer<LoopSession>) -> UInt32? {
        let slotPlusOne = unsafe session.pointee.slotPlusOne
        return slotPlusOne == 0 ? nil : slotPlusOne - 1
    }
}
