import CertificateIssuing
import Foundation
import HubCrypto

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
        var issuer: X509Certificate.Issuer?
        var chain: [X509Certificate] = []
        for level in 0..<(kind.intermediates == 0 ? 0 : kind.intermediates + 1) {
            let key = try X509Key(pem: ES256PrivateKey.generate().pem)
            let name = level == 0 ? "root" : "intermediate \(level)"
            let authority = try X509Certificate(commonName: name, key: key, issuer: issuer, validity: -3600...86_400)
            chain.insert(authority, at: 0)
            issuer = (authority, key)
        }
        let keyPEM = kind.rsaBits.map { RS256PrivateKey.generate(bits: $0).pem } ?? ES256PrivateKey.generate().pem
        let key = try X509Key(pem: keyPEM)
        let own = try X509Certificate(
            commonName: kind.name, key: key, names: ["DNS:localhost", "IP:127.0.0.1"], issuer: issuer,
            validity: kind.validFrom...kind.validUntil)
        let root = chain.popLast() ?? own
        chain.insert(own, at: 0)
        if kind.isReversed { chain.reverse() }
        for (path, pem) in [
            (authorityPath, root.pem), (certificatePath, chain.map(\.pem).joined()),
            (keyPath, kind.password.map { key.pem(password: $0) } ?? keyPEM),
        ] {
            try Data(pem.utf8).write(to: URL(fileURLWithPath: path))
        }
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
}
