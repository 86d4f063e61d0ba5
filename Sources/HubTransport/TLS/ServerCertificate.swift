internal import COpenSSL
internal import Glibc
internal import HubCore

/// The certificate chain and private key for TLS handshakes: read once, checked, and shared by all loops.
///
/// The files are read here, because libwebsockets only logs mistakes in them and then refuses every handshake.
@safe package final class ServerCertificate: @unchecked Sendable {
    // Guard: nothing is written after `init`. OpenSSL counts references to these objects atomically and locks what it caches
    // in them.
    private let leaf: OpaquePointer
    private let key: OpaquePointer
    /// The certificates after the first, in the file's order, in an OpenSSL stack that owns its items.
    private let intermediates: OpaquePointer
    /// Keys that name and encrypt session tickets. Shared by all loops, because a client may return to another loop.
    /// Replaced along with the certificate, so that no session of the former one is resumed.
    private let ticketKeys: [UInt8]

    /// The subject's common name, or the first DNS name; empty when it has neither.
    package let name: String
    /// Certificates after the first.
    package let intermediateCount: Int
    /// Seconds since 1970.
    package let validFrom: Int64
    /// Seconds since 1970.
    package let expiresAt: Int64
    /// Whether the issuer of each certificate of the chain is the next one's subject.
    private let isOrdered: Bool

    /// Most bytes of a file: more than any chain with its key needs.
    static let fileBytesMax = 1 << 20
    /// OpenSSL's size of all ticket keys together: a name, a MAC key and a cipher key.
    private static let ticketKeyBytes = 80

    /// Reads and checks both files.
    /// - Throws: the faulty file, the mistake, and the remedy.
    package static func load(certificatePath: String, keyPath: String) throws(CertificateError) -> ServerCertificate {
        // The error queue belongs to the thread, and an older entry would be taken for the reason.
        ERR_clear_error()
        defer { ERR_clear_error() }
        let certificates = try CertificateFile.read(certificatePath, as: .certificate)
        let keyText = try CertificateFile.read(keyPath, as: .key)
        return try ServerCertificate(certificates: certificates, certificatePath: certificatePath, key: keyText, keyPath: keyPath)
    }

    private init(certificates: [UInt8], certificatePath: String, key keyText: [UInt8], keyPath: String) throws(CertificateError) {
        let chain = try unsafe CertificateFile.certificates(certificates, path: certificatePath)
        do throws(CertificateError) {
            unsafe key = try CertificateFile.key(keyText, path: keyPath)
        } catch {
            for unsafe certificate in unsafe chain { unsafe X509_free(certificate) }
            throw error
        }
        guard let intermediates = unsafe OPENSSL_sk_new_null() else { preconditionFailure("out of memory") }
        for unsafe certificate in unsafe chain.dropFirst() { unsafe OPENSSL_sk_push(intermediates, UnsafeRawPointer(certificate)) }
        unsafe self.intermediates = unsafe intermediates
        unsafe leaf = unsafe chain[0]
        intermediateCount = unsafe chain.count - 1
        name = unsafe CertificateFile.name(leaf)
        validFrom = unsafe CertificateFile.seconds(X509_get0_notBefore(leaf))
        expiresAt = unsafe CertificateFile.seconds(X509_get0_notAfter(leaf))
        isOrdered = unsafe zip(chain, chain.dropFirst()).allSatisfy { unsafe X509_check_issued($1, $0) == X509_V_OK }
        var ticketKeys = [UInt8](repeating: 0, count: Self.ticketKeyBytes)
        guard unsafe RAND_bytes(&ticketKeys, Int32(ticketKeys.count)) == 1 else { preconditionFailure("no random numbers") }
        self.ticketKeys = ticketKeys

        if unsafe X509_check_private_key(leaf, key) != 1 {
            let place = unsafe chain.firstIndex { unsafe X509_check_private_key($0, key) == 1 }
            let advice =
                place.map { "it belongs to number \($0 + 1) there: the server's own certificate has to come first" }
                ?? "put the two that were made together, or put the server's own certificate first"
            throw CertificateError(
                .pair, "the private key in \(keyPath) does not belong to the first certificate in \(certificatePath): \(advice)")
        }
        try checkStrength(certificatePath)
        assert(unsafe OPENSSL_sk_num(intermediates) == intermediateCount, "\(intermediateCount) certificates follow the first")
    }

    deinit {
        unsafe X509_free(leaf)
        unsafe EVP_PKEY_free(key)
        unsafe tandem_openssl_free_certificates(intermediates)
    }

    /// Refuses early what a handshake would refuse: too short a key, or too weak a signature.
    private func checkStrength(_ path: String) throws(CertificateError) {
        guard let context = unsafe SSL_CTX_new(TLS_server_method()) else { preconditionFailure("out of memory") }
        defer { unsafe SSL_CTX_free(context) }
        guard unsafe SSL_CTX_use_cert_and_key(context, leaf, key, intermediates, 1) == 1 else {
            let sentence =
                "\(path) is refused by OpenSSL (\(CertificateFile.reason())): use RSA of at least 2048 bits, or P-256, signed with SHA-256"
            throw CertificateError(.certificate, sentence)
        }
    }

    /// Warnings for the operator about a usable certificate.
    /// - Parameter now: seconds since 1970.
    package func warnings(now: Int64) -> [String] {
        var warnings: [String] = []
        if expiresAt <= now {
            warnings.append("the TLS certificate expired on \(Self.day(expiresAt)): clients refuse it; renew it and send SIGHUP")
        }
        if validFrom > now {
            warnings.append("the TLS certificate is not valid before \(Self.day(validFrom)): clients refuse it; check this machine's clock")
        }
        if !isOrdered {
            warnings.append(
                "the TLS certificate file is not a chain: behind the server's own certificate, each one has to be the issuer of the one before"
            )
        }
        return warnings
    }

    /// The day on which it expires, `2027-01-31`.
    package var expiryDay: String { Self.day(expiresAt) }

    private static func day(_ seconds: Int64) -> String {
        String(Timestamp.iso8601(milliseconds: max(0, seconds) * 1000).prefix(10))
    }

    // MARK: For the loops

    /// Gives one handshake this chain and key. On the loop's thread, from OpenSSL's certificate callback.
    func present(in session: OpaquePointer) -> Bool {
        // Cleared first, because a certificate of another key type would be added to the former one, not replace it.
        unsafe SSL_certs_clear(session)
        return unsafe SSL_use_cert_and_key(session, leaf, key, intermediates, 1) == 1
    }

    /// Makes a loop's TLS context issue and accept this certificate's session tickets. On the loop's thread.
    func setTicketKeys(of context: OpaquePointer) {
        var keys = ticketKeys
        let isSet = unsafe keys.withUnsafeMutableBytes {
            unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_TLSEXT_TICKET_KEYS, $0.count, $0.baseAddress) == 1
        }
        assert(isSet, "OpenSSL takes other ticket keys than \(keys.count) bytes")
    }
}

/// The reason why a certificate or its key cannot be used: one sentence with mistake, place and remedy.
package struct CertificateError: Error, CustomStringConvertible {
    /// The setting to change.
    package enum Culprit: Sendable {
        case certificate, key
        /// Both are valid, but do not belong together.
        case pair
    }

    /// The setting to change.
    package let culprit: Culprit
    package let description: String

    init(_ culprit: Culprit, _ description: String) {
        self.culprit = culprit
        self.description = description
    }
}
