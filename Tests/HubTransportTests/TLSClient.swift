import COpenSSL
import Foundation
import Glibc

/// A TLS client over a `RawSocket`. Trusts everybody: what is proven here is bytes, not names.
final class TLSSocket: ByteStream {
    private let socket: RawSocket
    private let context: OpaquePointer
    private let session: OpaquePointer

    init(_ socket: RawSocket) throws {
        guard let context = SSL_CTX_new(TLS_client_method()), let session = SSL_new(context) else {
            throw StreamError("no TLS session")
        }
        self.socket = socket
        self.context = context
        self.session = session
        SSL_set_fd(session, socket.descriptor)
        guard SSL_connect(session) == 1 else { throw StreamError("TLS handshake failed: error \(ERR_get_error())") }
    }

    deinit {
        SSL_free(session)
        SSL_CTX_free(context)
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

/// A self-signed certificate for one test run, in files that go away with it.
final class TestCertificate {
    let certificatePath: String
    let keyPath: String
    private let folder: URL

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("tandem-tls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        certificatePath = folder.appendingPathComponent("cert.pem").path
        keyPath = folder.appendingPathComponent("key.pem").path
        guard let key = tandem_openssl_generate_p256(), let certificate = X509_new() else { throw StreamError("no certificate") }
        defer {
            EVP_PKEY_free(key)
            X509_free(certificate)
        }
        X509_set_version(certificate, 2)
        ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1)
        X509_gmtime_adj(X509_getm_notBefore(certificate), -3600)
        X509_gmtime_adj(X509_getm_notAfter(certificate), 86_400)
        X509_set_pubkey(certificate, key)
        let name = X509_get_subject_name(certificate)
        X509_NAME_add_entry_by_txt(name, "CN", Self.asciiString, Array("localhost".utf8), 9, -1, 0)
        X509_set_issuer_name(certificate, name)
        guard X509_sign(certificate, key, EVP_sha256()) > 0 else { throw StreamError("the certificate cannot be signed") }
        try Self.write(certificatePath) { PEM_write_bio_X509($0, certificate) }
        try Self.write(keyPath) { PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) }
    }

    deinit {
        try? FileManager.default.removeItem(at: folder)
    }

    /// OpenSSL's macro for plain ASCII, which Swift does not import.
    private static let asciiString: Int32 = 0x1001

    private static func write(_ path: String, _ body: (OpaquePointer) -> Int32) throws {
        guard let bio = BIO_new(BIO_s_mem()) else { throw StreamError("no memory BIO") }
        defer { BIO_free(bio) }
        guard body(bio) == 1 else { throw StreamError("cannot write PEM") }
        var start: UnsafePointer<CChar>?
        let count = tandem_openssl_memory(bio, &start)
        guard let start else { throw StreamError("empty PEM") }
        try Data(bytes: start, count: count).write(to: URL(fileURLWithPath: path))
    }
}
