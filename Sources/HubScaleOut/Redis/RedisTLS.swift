internal import COpenSSL
internal import Glibc

/// TLS on a connection to Redis. The server's certificate must be valid for its name.
@safe final class RedisTLS {
    private let socket: RedisSocket
    private let context: OpaquePointer
    private let connection: OpaquePointer

    /// Shakes hands.
    /// - Parameter authorities: file with the certificates to trust; nil: the system's.
    init(_ socket: RedisSocket, host: String, authorities: String?, deadline: ContinuousClock.Instant) throws(RedisFailure) {
        guard let context = unsafe SSL_CTX_new(TLS_client_method()) else { throw Self.failure }
        unsafe SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        _ = unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil)
        let isTrusting =
            if let authorities {
                unsafe SSL_CTX_load_verify_locations(context, authorities, nil)
            } else {
                unsafe SSL_CTX_set_default_verify_paths(context)
            }
        guard isTrusting == 1, let connection = unsafe SSL_new(context) else {
            unsafe SSL_CTX_free(context)
            if let authorities { throw .lost("the authorities' certificates in \(authorities) cannot be read") }
            throw Self.failure
        }
        self.socket = socket
        unsafe self.context = context
        unsafe self.connection = connection
        // `deinit` also runs when an initializer throws after all properties are set.
        unsafe SSL_set_fd(connection, socket.descriptor)
        let parameters = unsafe SSL_get0_param(connection)
        if unsafe X509_VERIFY_PARAM_set1_ip_asc(parameters, host) != 1 {
            guard unsafe SSL_set1_host(connection, host) == 1,
                unsafe host.withCString({ name in
                    unsafe SSL_ctrl(
                        connection, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name), UnsafeMutableRawPointer(mutating: name))
                }) == 1
            else { throw Self.failure }
        }
        while true {
            ERR_clear_error()
            let code = unsafe SSL_connect(connection)
            if code == 1 { return }
            guard try wait(after: code, deadline) else { throw problem }
        }
    }

    deinit {
        unsafe SSL_free(connection)
        unsafe SSL_CTX_free(context)
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(RedisFailure) -> Int? {
        ERR_clear_error()
        let count = unsafe SSL_read(connection, buffer.baseAddress, CInt(clamping: buffer.count))
        if count > 0 { return Int(count) }
        switch unsafe SSL_get_error(connection, count) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return nil
        default: throw .lost("it ended the connection")
        }
    }

    /// - Returns: the number of bytes; 0: nothing fits now. The next call has to bring the same bytes again.
    func write(_ bytes: UnsafeRawBufferPointer) throws(RedisFailure) -> Int {
        if unsafe bytes.isEmpty { return 0 }
        ERR_clear_error()
        let count = unsafe SSL_write(connection, bytes.baseAddress, CInt(clamping: bytes.count))
        if count > 0 { return Int(count) }
        switch unsafe SSL_get_error(connection, count) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return 0
        default: throw .lost("it ended the connection")
        }
    }

    /// Whether bytes wait that poll does not see.
    var hasPending: Bool { unsafe SSL_pending(connection) > 0 }

    /// - Returns: false for an error that no wait mends.
    private func wait(after code: CInt, _ deadline: ContinuousClock.Instant) throws(RedisFailure) -> Bool {
        switch unsafe SSL_get_error(connection, code) {
        case SSL_ERROR_WANT_READ: try socket.wait(reading: true, writing: false, deadline)
        case SSL_ERROR_WANT_WRITE: try socket.wait(reading: false, writing: true, deadline)
        default: return false
        }
        return true
    }

    /// Why the handshake failed: the certificate, where that is the cause.
    private var problem: RedisFailure {
        let result = unsafe SSL_get_verify_result(connection)
        if result != Int(X509_V_OK) {
            return .lost("its certificate is refused: \(unsafe String(cString: X509_verify_cert_error_string(result)))")
        }
        return Self.failure
    }

    private static var failure: RedisFailure {
        let reason = unsafe ERR_reason_error_string(ERR_peek_last_error())
        return .lost("TLS fails: \(unsafe reason.map { unsafe String(cString: $0) } ?? "it ended the connection")")
    }
}

@available(*, unavailable)
extension RedisTLS: Sendable {}
