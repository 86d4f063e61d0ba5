import COpenSSL
import Foundation

/// A server's certificate for one test, with its key and its authority, in files that are deleted with it.
package final class TestCertificate {
    /// The properties of a certificate.
    package struct Kind {
        package var name = "localhost"
        /// Nil: a P-256 key.
        package var rsaBits: Int?
        /// Authorities between the root and the server's certificate; the file leaves out the root. 0: self-signed.
        package var intermediates = 0
        /// Seconds from now.
        package var validFrom = -3600
        package var validUntil = 86_400
        /// Password of the key file.
        package var password: String?
        /// Whether the file lists its certificates from the last to the first.
        package var isReversed = false

        package init(
            name: String = "localhost", rsaBits: Int? = nil, intermediates: Int = 0, validFrom: Int = -3600, validUntil: Int = 86_400,
            password: String? = nil, isReversed: Bool = false
        ) {
            self.name = name
            self.rsaBits = rsaBits
            self.intermediates = intermediates
            self.validFrom = validFrom
            self.validUntil = validUntil
            self.password = password
            self.isReversed = isReversed
        }
    }

    package let certificatePath: String
    package let keyPath: String
    /// File of the root certificate.
    package let authorityPath: String
    /// Folder of the files, deleted with this object.
    package let folder: URL

    package convenience init() throws { try self.init(Kind()) }

    package init(_ kind: Kind) throws {
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

    /// Replaces the files by another certificate's, like a renewal.
    package func replace(with other: TestCertificate) throws {
        for (former, new) in [(certificatePath, other.certificatePath), (keyPath, other.keyPath)] {
            try Data(contentsOf: URL(fileURLWithPath: new)).write(to: URL(fileURLWithPath: former))
        }
    }

    /// A certificate with its key.
    private final class Issued {
        let certificate: OpaquePointer
        let key: OpaquePointer

        init(name: String, isAuthority: Bool, kind: Kind, issuer: Issued?) throws {
            guard let key = kind.rsaBits.map({ tandem_openssl_generate_rsa($0) }) ?? tandem_openssl_generate_p256(),
                let certificate = X509_new()
            else { throw CertificateFailure("no certificate") }
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
            // The names and addresses of the tests' servers.
            if !isAuthority, let item = X509V3_EXT_conf_nid(nil, nil, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1") {
                X509_add_ext(certificate, item, -1)
                X509_EXTENSION_free(item)
            }
            guard X509_sign(certificate, issuer?.key ?? key, EVP_sha256()) > 0 else {
                throw CertificateFailure("the certificate cannot be signed")
            }
        }

        deinit {
            EVP_PKEY_free(key)
            X509_free(certificate)
        }

        func certificatePEM() throws -> Data { try Self.pem { PEM_write_bio_X509($0, certificate) } }

        func keyPEM(password: String?) throws -> Data {
            guard let password else { return try Self.pem { PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) } }
            return try Self.pem {
                PEM_write_bio_PrivateKey($0, key, EVP_aes_128_cbc(), Array(password.utf8), Int32(password.utf8.count), nil, nil)
            }
        }

        /// OpenSSL's macro for plain ASCII, which Swift does not import.
        private static let asciiString: Int32 = 0x1001

        private static func pem(_ body: (OpaquePointer) -> Int32) throws -> Data {
            guard let bio = BIO_new(BIO_s_mem()) else { throw CertificateFailure("no memory BIO") }
            defer { BIO_free(bio) }
            guard body(bio) == 1 else { throw CertificateFailure("cannot write PEM") }
            var start: UnsafePointer<CChar>?
            let count = tandem_openssl_memory(bio, &start)
            guard let start else { throw CertificateFailure("empty PEM") }
            return Data(bytes: start, count: count)
        }
    }
}

struct CertificateFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
