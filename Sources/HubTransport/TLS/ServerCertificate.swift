internal import COpenSSL
internal import Glibc
internal import HubCore

/// The certificate chain and private key that TLS handshakes are answered with: read once, checked, and shared by all loops.
///
/// The files are read here and not by libwebsockets, which only logs what is wrong with them and then refuses every handshake.
@safe package final class ServerCertificate: @unchecked Sendable {
    // Guard: nothing is written after `init`. OpenSSL counts references to these objects atomically and locks what it caches
    // in them.
    private let leaf: OpaquePointer
    private let key: OpaquePointer
    /// What stands behind the first certificate, in the file's order: OpenSSL's stack, which owns its items.
    private let intermediates: OpaquePointer
    /// Names and encrypts session tickets. Common to all loops, because who comes back may come to another one; and replaced
    /// together with the certificate, so that nobody resumes a session that was begun under the former one.
    private let ticketKeys: [UInt8]

    /// The subject's common name, or the first DNS name; empty when it has neither.
    package let name: String
    package let intermediateCount: Int
    /// In seconds since 1970.
    package let validFrom: Int64
    package let expiresAt: Int64
    /// The issuer of each certificate of the chain is the next one's subject.
    private let isOrdered: Bool

    /// More than any chain with its key needs; beyond it the file is something else.
    static let fileBytesMax = 1 << 20
    /// OpenSSL's size of all ticket keys together: a name, a MAC key and a cipher key.
    private static let ticketKeyBytes = 80

    /// Reads and checks both files.
    /// - Throws: what is wrong with which of them, and what to do about it.
    package static func load(certificatePath: String, keyPath: String) throws(CertificateError) -> ServerCertificate {
        // The queue is the thread's, and what an earlier user left there would be taken for a reason.
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
            throw CertificateError(.pair, "the private key in \(keyPath) does not belong to the first certificate in \(certificatePath): \(advice)")
        }
        try checkStrength(certificatePath)
    }

    deinit {
        unsafe X509_free(leaf)
        unsafe EVP_PKEY_free(key)
        unsafe tandem_openssl_free_certificates(intermediates)
    }

    /// Whatever a handshake would refuse is refused now: a key that is too short, a signature that is too weak.
    private func checkStrength(_ path: String) throws(CertificateError) {
        guard let context = unsafe SSL_CTX_new(TLS_server_method()) else { preconditionFailure("out of memory") }
        defer { unsafe SSL_CTX_free(context) }
        guard unsafe SSL_CTX_use_cert_and_key(context, leaf, key, intermediates, 1) == 1 else {
            let sentence = "\(path) is refused by OpenSSL (\(CertificateFile.reason())): use RSA of at least 2048 bits, or P-256, signed with SHA-256"
            throw CertificateError(.certificate, sentence)
        }
    }

    /// What an operator ought to know though the certificate can be used.
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
                "the TLS certificate file is not a chain: behind the server's own certificate, each one has to be the issuer of the one before")
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
        // First, because a certificate of another key type would stand beside the former one and not replace it.
        unsafe SSL_certs_clear(session)
        return unsafe SSL_use_cert_and_key(session, leaf, key, intermediates, 1) == 1
    }

    /// Makes a loop's TLS context issue and accept this certificate's session tickets. On the loop's thread.
    func setTicketKeys(of context: OpaquePointer) {
        var keys = ticketKeys
        unsafe keys.withUnsafeMutableBytes { unsafe _ = SSL_CTX_ctrl(context, SSL_CTRL_SET_TLSEXT_TICKET_KEYS, $0.count, $0.baseAddress) }
    }
}

/// Why a certificate or its key cannot be used: one sentence that says what, where and what to do.
package struct CertificateError: Error, CustomStringConvertible {
    /// Which setting to change.
    package enum Culprit: Sendable {
        case certificate, key
        /// Each is good, and they do not belong together.
        case pair
    }

    package let culprit: Culprit
    package let description: String

    init(_ culprit: Culprit, _ description: String) {
        self.culprit = culprit
        self.description = description
    }
}
