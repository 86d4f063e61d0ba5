import COpenSSL
import CertificateIssuing
import HubCrypto

/// The TLS settings of one listening port: its certificate, TLS 1.2 and later, and the protocols offered by ALPN.
///
/// `@unchecked Sendable`: `init` sets everything; afterwards OpenSSL only reads the context and counts its references atomically.
@safe final class TLSContext: @unchecked Sendable {
    private let handle: OpaquePointer

    /// The HTTP versions of a port. A client that offers none of them is refused by a TLS alert.
    enum Versions { case http1, http2, both }

    init(certificatePEM: String, privateKeyPEM: String, versions: Versions) throws(CryptoError) {
        guard let handle = unsafe SSL_CTX_new(TLS_server_method()) else { throw .fromLibrary("cannot prepare TLS") }
        unsafe self.handle = unsafe handle
        unsafe SSL_CTX_ctrl(handle, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil)
        unsafe SSL_CTX_ctrl(
            handle, SSL_CTRL_MODE, Int(SSL_MODE_ENABLE_PARTIAL_WRITE) | Int(SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER), nil)
        unsafe SSL_CTX_set_options(handle, noRenegotiation)
        let certificate = try X509Certificate(pem: certificatePEM)
        let key = try X509Key(pem: privateKeyPEM)
        let isUsable =
            unsafe certificate.withHandle { unsafe SSL_CTX_use_certificate(handle, $0) } == 1
            && key.withHandle { unsafe SSL_CTX_use_PrivateKey(handle, $0) } == 1
        guard isUsable else { throw .fromLibrary("cannot use the server's certificate") }
        let choose:
            @convention(c) (
                OpaquePointer?, UnsafeMutablePointer<UnsafePointer<UInt8>?>?, UnsafeMutablePointer<UInt8>?, UnsafePointer<UInt8>?, UInt32,
                UnsafeMutableRawPointer?
            ) -> Int32
        // C functions capture nothing, so each choice needs a function of its own.
        switch versions {
        case .http1:
            unsafe choose = { _, output, count, offered, offeredBytes, _ in
                unsafe chooseProtocol(["http/1.1"], from: UnsafeBufferPointer(start: offered, count: Int(offeredBytes)), output, count)
            }
        case .http2:
            unsafe choose = { _, output, count, offered, offeredBytes, _ in
                unsafe chooseProtocol(["h2"], from: UnsafeBufferPointer(start: offered, count: Int(offeredBytes)), output, count)
            }
        case .both:
            unsafe choose = { _, output, count, offered, offeredBytes, _ in
                unsafe chooseProtocol(
                    ["h2", "http/1.1"], from: UnsafeBufferPointer(start: offered, count: Int(offeredBytes)), output, count)
            }
        }
        unsafe SSL_CTX_set_alpn_select_cb(handle, choose, nil)
    }

    deinit {
        unsafe SSL_CTX_free(handle)
    }

    /// A server-side TLS stream over a connected, non-blocking socket, which the caller keeps and closes.
    func stream(over descriptor: Int32) -> TLSStream? {
        guard let session = unsafe SSL_new(handle) else { return nil }
        guard unsafe SSL_set_fd(session, descriptor) == 1 else {
            unsafe SSL_free(session)
            return nil
        }
        unsafe SSL_set_accept_state(session)
        return unsafe TLSStream(owning: session)
    }
}

/// SSL_OP_NO_RENEGOTIATION of OpenSSL 3, SSL_OP_BIT(30); the macro's cast keeps Swift from importing it.
private let noRenegotiation: UInt64 = 1 << 30

/// Picks the first of `wanted` that the client offers. The result points into the client's list, which OpenSSL keeps.
private func chooseProtocol(
    _ wanted: [String], from offered: UnsafeBufferPointer<UInt8>,
    _ output: UnsafeMutablePointer<UnsafePointer<UInt8>?>?, _ count: UnsafeMutablePointer<UInt8>?
) -> Int32 {
    for name in wanted {
        var index = 0
        while index < offered.count {
            let length = unsafe Int(offered[index])
            let end = index + 1 + length
            guard end <= offered.count else { break }
            if unsafe offered[index + 1..<end].elementsEqual(name.utf8) {
                unsafe output?.pointee = unsafe offered.baseAddress?.advanced(by: index + 1)
                unsafe count?.pointee = UInt8(length)
                return SSL_TLSEXT_ERR_OK
            }
            index = end
        }
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL
}
