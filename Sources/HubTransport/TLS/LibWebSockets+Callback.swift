internal import CLibWebSockets

extension LibWebSockets {
    /// libwebsockets' callback for every reason: finds the loop and the socket, and forwards the call.
    ///
    /// One thread serves a context, and the library calls back on that thread only. The loop is the context's user pointer,
    /// borrowed: the loop destroys the context, so it outlives every call. Connections have the library's raw role. The
    /// library reads and writes bytes through TLS, and `HubWire` gives them a meaning.
    static let callback:
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
            // In this call only, the session pointer is the new TLS context.
            case LWS_CALLBACK_OPENSSL_LOAD_EXTRA_SERVER_VERIFY_CERTS:
                if let session = unsafe session { return unsafe loop.library?.configureTLS(OpaquePointer(session)) == true ? 0 : -1 }
            default: break
            }
            // The library's own connections have no socket here.
            guard let socket = unsafe lws_get_opaque_user_data(wsi)?.assumingMemoryBound(to: Socket.self) else { return 0 }
            unsafe socket.pointee.tls = unsafe wsi
            switch reason {
            case LWS_CALLBACK_RAW_RX:
                return unsafe loop.received(socket, UnsafeMutableRawBufferPointer(start: input, count: input == nil ? 0 : count)) ? 0 : -1
            case LWS_CALLBACK_RAW_WRITEABLE: return unsafe loop.writable(socket) ? 0 : -1
            case LWS_CALLBACK_RAW_CLOSE:
                unsafe loop.closed(socket)
                return 0
            case LWS_CALLBACK_WSI_DESTROY:
                unsafe loop.descriptorEnded(socket)
                return 0
            default: return 0
            }
        }
}
