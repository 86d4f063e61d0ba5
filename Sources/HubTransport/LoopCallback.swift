internal import CLibWebSockets
internal import Glibc
internal import HubCore

/// The one function libwebsockets calls, for every protocol and reason: finds the loop, names the call, returns an integer.
///
/// libwebsockets' contract: a context is served by one thread, and calls back only on it. The loop is the context's user
/// pointer, borrowed: it destroys the context, so it outlives every call. The session pointer is the `Session` below,
/// zeroed when the library makes it.
let loopCallback:
    @convention(c) (
        OpaquePointer?, lws_callback_reasons, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, Int
    ) -> Int32 = { wsi, reason, session, input, count in
        guard let wsi = unsafe wsi, let context = unsafe lws_get_context(wsi), let user = unsafe lws_context_user(context) else {
            return 0
        }
        let loop = unsafe Unmanaged<Loop>.fromOpaque(user).takeUnretainedValue()
        loop.turnBegins()
        if reason == LWS_CALLBACK_WSI_CREATE { loop.descriptorTaken() }
        if reason == LWS_CALLBACK_WSI_DESTROY { unsafe loop.descriptorEnded(wsi) }
        // Java's HTTP client offers h2c with every plain request and expects to be ignored; this library would switch. What it
        // passes here is its own copy of the header, compared right after the call.
        if reason == LWS_CALLBACK_HTTP_CONFIRM_UPGRADE, let name = unsafe input?.assumingMemoryBound(to: CChar.self),
            unsafe strcasecmp(name, "h2c") == 0
        {
            unsafe name[0] = CChar(UInt8(ascii: "-"))
        }
        // The one call in which the session pointer is something else: the TLS context in the making.
        if reason == LWS_CALLBACK_OPENSSL_LOAD_EXTRA_SERVER_VERIFY_CERTS, let session = unsafe session {
            return unsafe loop.native.configureTLS(OpaquePointer(session)) ? 0 : -1
        }
        guard let session = unsafe session?.assumingMemoryBound(to: LoopSession.self) else { return 0 }
        let bytes = unsafe UnsafeRawBufferPointer(start: input, count: input == nil ? 0 : count)
        switch reason {
        case LWS_CALLBACK_ESTABLISHED: return unsafe loop.established(wsi, session) ? 0 : -1
        case LWS_CALLBACK_RECEIVE: return unsafe loop.received(wsi, session, bytes) ? 0 : -1
        case LWS_CALLBACK_RECEIVE_PONG:
            unsafe loop.receivedPong(session, bytes)
            return 0
        case LWS_CALLBACK_SERVER_WRITEABLE: return unsafe loop.writable(wsi, session) ? 0 : -1
        case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE: return unsafe loop.peerCloses(wsi, session, bytes) ? 0 : -1
        case LWS_CALLBACK_CLOSED:
            unsafe loop.closed(session)
            return 0
        case LWS_CALLBACK_HTTP: return unsafe loop.requestHead(wsi, session) ? 0 : -1
        case LWS_CALLBACK_HTTP_BODY: return unsafe loop.requestBody(wsi, session, bytes) ? 0 : -1
        case LWS_CALLBACK_HTTP_BODY_COMPLETION: return unsafe loop.requestBodyEnded(wsi, session) ? 0 : -1
        case LWS_CALLBACK_HTTP_WRITEABLE: return unsafe loop.responseWritable(wsi, session) ? 0 : -1
        case LWS_CALLBACK_CLOSED_HTTP:
            unsafe loop.exchangeClosed(session)
            return 0
        default: return 0
        }
    }

/// What libwebsockets keeps for us beside each of its connections. All zero when new.
struct LoopSession {
    /// Slot in the connection table, plus one; 0 before the upgrade is complete.
    var slotPlusOne: UInt32
    /// Index of the HTTP exchange under way, plus one; 0 when there is none.
    var exchangePlusOne: UInt32
    /// The library has told the end of this request's body.
    var bodyEnded: Bool
}
