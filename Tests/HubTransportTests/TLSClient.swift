import COpenSSL
import Foundation
import Glibc

/// A TLS client over a `RawSocket`. Trusts everybody unless it is told whom.
final class TLSSocket: ByteStream {
    /// What a client insists on.
    struct Wishes {
        /// `TLS1_VERSION` and the like; nil: whatever the library speaks.
        var version: Int32?
        /// Ciphers of TLS 1.2 and below, as OpenSSL writes them.
        var ciphers: String?
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
        if let authority = wishes.authorityPath {
            guard let store = SSL_CTX_get_cert_store(context), X509_STORE_load_file(store, authority) == 1 else { throw StreamError("no authority") }
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

    /// What another connection can resume; with TLS 1.3 only after something was received.
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

/// A server's certificate for one test, with its key and the authority behind it, in files that go away with it.
final class TestCertificate {
    /// What is particular about a certificate.
    struct Kind {
        var name = "localhost"
        /// Nil: P-256.
        var rsaBits: Int?
        /// Authorities between the root, which is not in the file, and the server's certificate. None: self-signed.
        var intermediates = 0
        /// In seconds from now.
        var validFrom = -3600
        var validUntil = 86_400
        /// Of the key file.
        var password: String?
        /// The file's certificates from the last to the first.
        var isReversed = false
    }

    let certificatePath: String
    let keyPath: String
    /// The root that the chain leads to.
    let authorityPath: String
    let folder: URL

    convenience init() throws { try self.init(Kind()) }

    init(_ kind: Kind) throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("tandem-tls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        certificatePath = folder.appendingPathComponent("cert.pem").path
        keyPath = folder.appendingPathComponent("key.pem").path
        authorityPath = folder.appendingPathComponent("root.pem").path
        var issuer: Issued?
        var chain: [Issued] = []
        if kind.intermediates > 0 {
            issuer = try Issued(name: "root", isAuthority: true, kind: Kind(), issuer: nil)
            for level in 1...kind.intermediates {
                let next = try Issued(name: "intermediate \(level)", isAuthority: true, kind: Kind(), issuer: issuer)
                chain.insert(next, at: 0)
                if level == 1, let issuer { try issuer.certificatePEM().write(to: URL(fileURLWithPath: authorityPath)) }
                issuer = next
            }
        }
        let own = try Issued(name: kind.name, isAuthority: false, kind: kind, issuer: issuer)
        chain.insert(own, at: 0)
        if kind.intermediates == 0 { try own.certificatePEM().write(to: URL(fileURLWithPath: authorityPath)) }
        if kind.isReversed { chain.reverse() }
        try chain.map { try $0.certificatePEM() }.reduce(Data(), +).write(to: URL(fileURLWithPath: certificatePath))
        try own.keyPEM(password: kind.password).write(to: URL(fileURLWithPath: keyPath))
    }

    deinit {
        try? FileManager.default.removeItem(at: folder)
    }

    /// A certificate with its key.
    private final class Issued {
        let certificate: OpaquePointer
        let key: OpaquePointer

        init(name: String, isAuthority: Bool, kind: Kind, issuer: Issued?) throws {
            guard let key = kind.rsaBits.map({ tandem_openssl_generate_rsa($0) }) ?? tandem_openssl_generate_p256(),
                let certificate = X509_new()
            else { throw StreamError("no certificate") }
            self.key = key
            self.certificate = certificate
            X509_set_version(certificate, 2)
            ASN1_INTEGER_set(X509_get_serialNumber(certificate), Int.random(in: 1...Int(Int32.max)))
            X509_gmtime_adj(X509_getm_notBefore(certificate), kind.validFrom)
            X509_gmtime_adj(X509_getm_notAfter(certificate), kind.validUntil)
            X509_set_pubkey(certificate, key)
            let subject = X509_get_subject_name(certificate)
            X509_NAME_add_entry_by_txt(subject, "CN", Self.asciiString, Array(name.utf8), Int32(name.utf8.count), -1, 0)
            X509_set_issuer_name(certificate, issuer.map { X509_get_subject_name($0.certificate) } ?? subject)
            if isAuthority, let item = X509V3_EXT_conf_nid(nil, nil, NID_basic_constraints, "critical,CA:TRUE") {
                X509_add_ext(certificate, item, -1)
                X509_EXTENSION_free(item)
            }
            guard X509_sign(certificate, issuer?.key ?? key, EVP_sha256()) > 0 else { throw StreamError("the certificate cannot be signed") }
        }

        deinit {
            EVP_PKEY_free(key)
            X509_free(certificate)
        }

        func certificatePEM() throws -> Data { try Self.pem { PEM_write_bio_X509($0, certificate) } }

        func keyPEM(password: String?) throws -> Data {
            guard let password else { return try Self.pem { PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) } }
            return try Self.pem { PEM_write_bio_PrivateKey($0, key, EVP_aes_128_cbc(), Array(password.utf8), Int32(password.utf8.count), nil, nil) }
        }

        /// OpenSSL's macro for plain ASCII, which Swift does not import.
        private static let asciiString: Int32 = 0x1001

        private static func pem(_ body: (OpaquePointer) -> Int32) throws -> Data {
            guard let bio = BIO_new(BIO_s_mem()) else { throw StreamError("no memory BIO") }
            defer { BIO_free(bio) }
            guard body(bio) == 1 else { throw StreamError("cannot write PEM") }
            var start: UnsafePointer<CChar>?
            let count = tandem_openssl_memory(bio, &start)
            guard let start else { throw StreamError("empty PEM") }
            return Data(bytes: start, count: count)
        }
    }
}
