import COpenSSL
import Foundation
import Glibc

/// A TLS client over a `RawSocket`. Trusts everybody unless it is told whom.
final class TLSSocket: ByteStream {
    /// Requirements of a client.
    struct Wishes {
        /// `TLS1_VERSION` and the like; nil: whatever the library speaks.
        var version: Int32?
        /// Ciphers of TLS 1.2 and below, as OpenSSL writes them.
        var ciphers: String?
        /// Those of TLS 1.3.
        var suites: String?
        /// An authority's certificate: the server's chain has to lead to it.
        var authorityPath: String?
        var session: TLSSession?
        var protocols: [String] = []
    }

    private let socket: RawSocket
    private let context: OpaquePointer
    private let session: OpaquePointer

    var descriptor: Int32 { socket.descriptor }

    init(_ socket: RawSocket, _ wishes: Wishes = Wishes()) throws {
        guard let context = SSL_CTX_new(TLS_client_method()), let session = SSL_new(context) else {
            throw StreamError("no TLS session")
        }
        self.socket = socket
        self.context = context
        self.session = session
        if let version = wishes.version {
            SSL_ctrl(session, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(version), nil)
            SSL_ctrl(session, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(version), nil)
        }
        // Level 0, so that what is refused is refused by the server and not by this side.
        SSL_set_cipher_list(session, (wishes.ciphers ?? "DEFAULT") + ":@SECLEVEL=0")
        if let suites = wishes.suites { SSL_set_ciphersuites(session, suites) }
        if let authority = wishes.authorityPath {
            guard let store = SSL_CTX_get_cert_store(context), X509_STORE_load_file(store, authority) == 1 else {
                throw StreamError("no authority")
            }
            SSL_set_verify(session, SSL_VERIFY_PEER, nil)
        }
        if let resumed = wishes.session { SSL_set_session(session, resumed.handle) }
        if !wishes.protocols.isEmpty {
            let list = wishes.protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
            SSL_set_alpn_protos(session, list, UInt32(list.count))
        }
        SSL_set_fd(session, socket.descriptor)
        ERR_clear_error()
        guard SSL_connect(session) == 1 else { throw StreamError("TLS handshake failed: \(Self.reason)") }
    }

    deinit {
        SSL_free(session)
        SSL_CTX_free(context)
    }

    private static var reason: String {
        let code = ERR_peek_last_error()
        defer { ERR_clear_error() }
        return ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(code)"
    }

    /// `TLSv1.3` and the like.
    var version: String { String(cString: SSL_get_version(session)) }
    /// The chosen cipher, as OpenSSL writes it.
    var cipher: String { String(cString: SSL_CIPHER_get_name(SSL_get_current_cipher(session))) }
    var wasResumed: Bool { SSL_session_reused(session) == 1 }
    /// Certificates that the server sent.
    var chainCount: Int { SSL_get_peer_cert_chain(session).map { Int(OPENSSL_sk_num($0)) } ?? 0 }

    /// Common name of the server's certificate.
    var serverName: String {
        guard let certificate = SSL_get1_peer_certificate(session) else { return "" }
        defer { X509_free(certificate) }
        var text = [CChar](repeating: 0, count: 64)
        let length = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, &text, 64)
        return String(decoding: text[..<max(0, Int(length))].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The protocol that ALPN chose; empty when none was.
    var chosenProtocol: String {
        var name: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(session, &name, &count)
        return String(decoding: UnsafeBufferPointer(start: name, count: Int(count)), as: UTF8.self)
    }

    /// Session that another connection can resume; with TLS 1.3 only after something was received.
    var resumption: TLSSession? { SSL_get1_session(session).map(TLSSession.init) }

    /// Asks for new keys on the open connection, which TLS 1.2 allows; true when the server agreed.
    func renegotiate() -> Bool {
        ERR_clear_error()
        return SSL_renegotiate(session) == 1 && SSL_do_handshake(session) == 1 && SSL_renegotiate_pending(session) == 0
    }

    func send(_ bytes: [UInt8]) throws {
        let count = SSL_write(session, bytes, Int32(bytes.count))
        guard count == bytes.count else { throw StreamError("cannot send through TLS: \(SSL_get_error(session, count))") }
    }

    func receive(_ count: Int) throws -> [UInt8] {
        var result: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            result = SSL_read(session, buffer.baseAddress, Int32(count))
            filled = max(0, Int(result))
        }
        if result <= 0 {
            let error = SSL_get_error(session, result)
            guard error == SSL_ERROR_ZERO_RETURN || error == SSL_ERROR_SSL || (error == SSL_ERROR_SYSCALL && errno != EAGAIN) else {
                throw StreamError("nothing arrived through TLS: \(error)")
            }
            return []
        }
        return bytes
    }

    func close() {
        socket.close()
    }
}

/// A session to resume.
final class TLSSession {
    let handle: OpaquePointer

    init(_ handle: OpaquePointer) {
        self.handle = handle
    }

    deinit { SSL_SESSION_free(handle) }
}
