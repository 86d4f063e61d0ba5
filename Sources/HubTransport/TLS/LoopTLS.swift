internal import COpenSSL
internal import Glibc

/// The TLS side of one loop: the context that libwebsockets made, and the certificate in force. On the loop's thread.
///
/// The certificate is not set in the context but handed to each handshake, so that replacing it is one assignment: handshakes
/// that have it already keep it, established connections need it no more, and none of the former one is left behind.
@safe final class LoopTLS {
    private(set) var certificate: ServerCertificate
    /// libwebsockets' own, which outlives this object's use of it: it ends with the loop's context.
    private var context: OpaquePointer?

    /// What TLS 1.2 may use, in the order we prefer: forward secrecy and authenticated encryption only. The longer AES key costs more with each
    /// record, and the longer hash that goes with it 200 bytes of each connection, for nothing that matters beside the key exchange.
    private static let ciphers = "ECDHE+AESGCM+AES128:ECDHE+AESGCM:ECDHE+CHACHA20"
    /// The same of TLS 1.3, which has no others that clients speak.
    private static let suites = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"

    init(certificate: ServerCertificate) {
        self.certificate = certificate
    }

    /// Sets up the context for handshakes; false when OpenSSL cannot. Borrows itself to it: the owner ends the context first.
    func configure(_ context: OpaquePointer) -> Bool {
        unsafe self.context = unsafe context
        unsafe SSL_CTX_set_cert_cb(
            context,
            { session, owner in
                guard let session = unsafe session, let owner = unsafe owner else { return 0 }
                return unsafe Unmanaged<LoopTLS>.fromOpaque(owner).takeUnretainedValue().certificate.present(in: session) ? 1 : 0
            }, Unmanaged.passUnretained(self).toOpaque())
        // A peer could have the server compute for nothing by renegotiating; TLS 1.3 has none, and no client of ours asks for it.
        unsafe SSL_CTX_set_options(context, Self.noRenegotiation)
        // A client that puts ChaCha20 first has no AES in hardware.
        unsafe SSL_CTX_set_options(context, Self.serverPreference | Self.prioritizeChaCha)
        // Sessions are resumed by tickets, which cost the server no memory; the table would keep 20,000 sessions on each loop.
        unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
        // An idle connection gives its record buffers back, 34 KB of them: nearly all connections are idle nearly all the time.
        unsafe SSL_CTX_ctrl(context, SSL_CTRL_MODE, Int(SSL_MODE_RELEASE_BUFFERS), nil)
        unsafe certificate.setTicketKeys(of: context)
        return unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil) == 1
            && SSL_CTX_set_cipher_list(context, Self.ciphers) == 1 && SSL_CTX_set_ciphersuites(context, Self.suites) == 1
    }

    /// Handshakes that begin from now on get this one.
    func use(_ certificate: ServerCertificate) {
        self.certificate = certificate
        if let context = unsafe context { unsafe certificate.setTicketKeys(of: context) }
    }

    /// What OpenSSL has counted of the handshakes.
    var handshakes: LoopFigures.Handshakes {
        guard let context = unsafe context else { return LoopFigures.Handshakes() }
        func count(_ command: Int32) -> UInt64 { UInt64(max(0, unsafe SSL_CTX_ctrl(context, command, 0, nil))) }
        return LoopFigures.Handshakes(
            begun: count(SSL_CTRL_SESS_ACCEPT), completed: count(SSL_CTRL_SESS_ACCEPT_GOOD), resumed: count(SSL_CTRL_SESS_HIT))
    }

    /// SSL_OP_NO_RENEGOTIATION, SSL_OP_CIPHER_SERVER_PREFERENCE and SSL_OP_PRIORITIZE_CHACHA of OpenSSL 3; the macros' casts keep Swift from
    /// importing them.
    private static let noRenegotiation: UInt64 = 1 << 30
    private static let serverPreference: UInt64 = 1 << 22
    private static let prioritizeChaCha: UInt64 = 1 << 21
}
