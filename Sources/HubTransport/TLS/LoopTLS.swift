internal import COpenSSL
internal import Glibc

/// The TLS side of one loop: the context that libwebsockets made, and the certificate in force. On the loop's thread.
///
/// The certificate is handed to each handshake, not set in the context, so replacing it is one assignment. Handshakes
/// that have the former one keep it, and established connections need none.
@safe final class LoopTLS {
    private(set) var certificate: ServerCertificate
    /// Owned by libwebsockets; ends with the loop's context, after this object's last use of it.
    private var context: OpaquePointer?
    private let thread = pthread_self()

    /// Ciphers of TLS 1.2 in order of preference: forward secrecy and authenticated encryption only. A longer AES key
    /// costs more per record, and its longer hash 200 bytes per connection. The key exchange is the weaker part, so
    /// neither adds security.
    private static let ciphers = "ECDHE+AESGCM+AES128:ECDHE+AESGCM:ECDHE+CHACHA20"
    /// Suites of TLS 1.3, in order of preference; clients speak no others.
    private static let suites = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"

    init(certificate: ServerCertificate) {
        self.certificate = certificate
    }

    /// Sets up the context for handshakes; false when OpenSSL fails. The context borrows this object, so the owner ends
    /// the context first.
    func configure(_ context: OpaquePointer) -> Bool {
        assert(unsafe self.context == nil, "a loop has a second TLS context")
        unsafe self.context = unsafe context
        unsafe SSL_CTX_set_cert_cb(
            context,
            { session, owner in
                guard let session = unsafe session, let owner = unsafe owner else { return 0 }
                let tls = unsafe Unmanaged<LoopTLS>.fromOpaque(owner).takeUnretainedValue()
                assert(tls.isOnThread, "a handshake asks for the certificate on another thread")
                return unsafe tls.certificate.present(in: session) ? 1 : 0
            }, Unmanaged.passUnretained(self).toOpaque())
        // Renegotiation would let a peer waste the server's CPU. TLS 1.3 has none, and no client needs it.
        unsafe SSL_CTX_set_options(context, Self.noRenegotiation)
        // A client that puts ChaCha20 first has no AES in hardware.
        unsafe SSL_CTX_set_options(context, Self.serverPreference | Self.prioritizeChaCha)
        // Sessions are resumed by tickets, which cost the server no memory; the table would keep 20,000 sessions on each loop.
        unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
        // An idle connection returns its record buffers, 34 KB: nearly all connections are idle nearly all the time.
        unsafe SSL_CTX_ctrl(context, SSL_CTRL_MODE, Int(SSL_MODE_RELEASE_BUFFERS), nil)
        unsafe certificate.setTicketKeys(of: context)
        return unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil) == 1
            && SSL_CTX_set_cipher_list(context, Self.ciphers) == 1 && SSL_CTX_set_ciphersuites(context, Self.suites) == 1
    }

    private var isOnThread: Bool { pthread_equal(thread, pthread_self()) != 0 }

    /// Sets the certificate of future handshakes.
    func use(_ certificate: ServerCertificate) {
        assert(isOnThread, "the certificate changes on another thread")
        self.certificate = certificate
        if let context = unsafe context { unsafe certificate.setTicketKeys(of: context) }
    }

    /// OpenSSL's counts of handshakes.
    var handshakes: LoopCounters.Handshakes {
        guard let context = unsafe context else { return LoopCounters.Handshakes() }
        func count(_ command: Int32) -> UInt64 { UInt64(max(0, unsafe SSL_CTX_ctrl(context, command, 0, nil))) }
        return LoopCounters.Handshakes(
            begun: count(SSL_CTRL_SESS_ACCEPT), completed: count(SSL_CTRL_SESS_ACCEPT_GOOD), resumed: count(SSL_CTRL_SESS_HIT))
    }

    /// SSL_OP_NO_RENEGOTIATION, SSL_OP_CIPHER_SERVER_PREFERENCE and SSL_OP_PRIORITIZE_CHACHA of OpenSSL 3; the macros'
    /// casts keep Swift from importing them.
    private static let noRenegotiation: UInt64 = 1 << 30
    private static let serverPreference: UInt64 = 1 << 22
    private static let prioritizeChaCha: UInt64 = 1 << 21
}
