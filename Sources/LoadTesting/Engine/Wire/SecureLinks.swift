internal import COpenSSL

/// TLS of a worker's connections. Certificates are not verified, because servers under test often have self-signed ones.
@safe final class SecureLinks {
    enum Handshake { case done, needsReading, needsWriting, failed }

    private let context: OpaquePointer
    private var sessions: [Int: OpaquePointer] = unsafe [:]

    init() throws(LoadError) {
        guard let context = unsafe SSL_CTX_new(TLS_client_method()) else { throw LoadError("OpenSSL gives no TLS context") }
        unsafe self.context = unsafe context
        unsafe SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nil)
        // Retries may come from another address, and partial writes are accepted.
        let modes = Int(SSL_MODE_ENABLE_PARTIAL_WRITE) | Int(SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER) | Int(SSL_MODE_RELEASE_BUFFERS)
        _ = unsafe SSL_CTX_ctrl(context, SSL_CTRL_MODE, modes, nil)
    }

    deinit {
        for unsafe session in unsafe sessions.values { unsafe SSL_free(session) }
        unsafe SSL_CTX_free(context)
    }

    /// - Parameter host: the name that the server is asked for.
    func begin(_ slot: Int, descriptor: Int32, host: String) {
        guard let session = unsafe SSL_new(context) else { return }
        unsafe SSL_set_fd(session, descriptor)
        unsafe SSL_set_connect_state(session)
        _ = unsafe host.withCString {
            unsafe SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name), UnsafeMutableRawPointer(mutating: $0))
        }
        unsafe sessions[slot] = unsafe session
    }

    func handshake(_ slot: Int) -> Handshake {
        guard let session = unsafe sessions[slot] else { return .failed }
        ERR_clear_error()
        let result = unsafe SSL_do_handshake(session)
        if result == 1 { return .done }
        switch unsafe SSL_get_error(session, result) {
        case SSL_ERROR_WANT_READ: return .needsReading
        case SSL_ERROR_WANT_WRITE: return .needsWriting
        default: return .failed
        }
    }

    /// As `recv`: 0 if the connection ended, -1 if nothing is there.
    func read(_ slot: Int, into room: UnsafeMutableRawBufferPointer) -> Int {
        guard let session = unsafe sessions[slot] else { return 0 }
        // SSL_get_error reads the thread's error queue first, which may hold another connection's errors.
        ERR_clear_error()
        let count = unsafe SSL_read(session, room.baseAddress, CInt(clamping: room.count))
        if count > 0 { return Int(count) }
        return unsafe SSL_get_error(session, count) == SSL_ERROR_WANT_READ ? -1 : 0
    }

    /// Bytes written; 0 if there is no room.
    func write(_ slot: Int, _ bytes: [UInt8]) -> Int {
        guard let session = unsafe sessions[slot], !bytes.isEmpty else { return 0 }
        return unsafe bytes.withUnsafeBytes { max(0, Int(unsafe SSL_write(session, $0.baseAddress, CInt(clamping: $0.count)))) }
    }

    func hasPending(_ slot: Int) -> Bool {
        guard let session = unsafe sessions[slot] else { return false }
        return unsafe SSL_pending(session) > 0
    }

    func free(_ slot: Int) {
        if let session = unsafe sessions.removeValue(forKey: slot) { unsafe SSL_free(session) }
    }
}
