import COpenSSL

/// One libcrypto key, private or public, freed with the last reference.
///
/// `@unchecked Sendable`: the handle is set once. libcrypto only reads a key while it signs or verifies with a context
/// of the call's own. Any number of threads may do both at the same time.
@safe final class AsymmetricKey: @unchecked Sendable {
    /// The two algorithms of JSON Web Signatures, and their demands on a key (RFC 7518, 3.3 and 3.4).
    enum Algorithm {
        case es256, rs256

        static let rsaBitsMin = 2048

        var name: String { self == .es256 ? "ES256" : "RS256" }
        var wanted: String {
            self == .es256 ? "an EC key on the curve P-256" : "an RSA key of at least \(Self.rsaBitsMin) bits"
        }
    }

    private let handle: OpaquePointer

    /// Takes ownership of the handle.
    private init(owning handle: OpaquePointer) {
        unsafe self.handle = unsafe handle
    }

    deinit {
        unsafe EVP_PKEY_free(handle)
    }

    convenience init(privatePEM pem: String, for algorithm: Algorithm) throws(CryptoError) {
        guard let handle = unsafe PEMText.privateKey(pem) else {
            throw .fromLibrary("cannot read the private key for \(algorithm.name): expected an unencrypted PEM file")
        }
        unsafe self.init(owning: handle)
        try check(algorithm)
    }

    convenience init(publicPEM pem: String, for algorithm: Algorithm) throws(CryptoError) {
        guard let handle = unsafe PEMText.publicKey(pem) else {
            throw .fromLibrary("cannot read the public key for \(algorithm.name): expected a PEM file with PUBLIC KEY")
        }
        unsafe self.init(owning: handle)
        try check(algorithm)
    }

    /// A new P-256 key pair, or an RSA one of `rsaBits`.
    static func generate(_ algorithm: Algorithm, rsaBits: Int) -> AsymmetricKey {
        let handle =
            unsafe algorithm == .es256
            ? tandem_openssl_generate_p256() : tandem_openssl_generate_rsa(rsaBits)
        guard let handle = unsafe handle else {
            preconditionFailure("libcrypto cannot generate a key for \(algorithm.name)")
        }
        return unsafe AsymmetricKey(owning: handle)
    }

    /// The private key as PKCS #8 in PEM, unencrypted.
    var privatePEM: String {
        unsafe PEMText.written { unsafe PEM_write_bio_PKCS8PrivateKey($0, handle, nil, nil, 0, nil, nil) }
    }

    /// The public half as SubjectPublicKeyInfo in PEM.
    var publicPEM: String {
        unsafe PEMText.written { unsafe PEM_write_bio_PUBKEY($0, handle) }
    }

    /// Signs SHA-256 of the message; the form is libcrypto's (DER for EC, PKCS #1 v1.5 for RSA).
    func signature(for message: [UInt8]) throws(CryptoError) -> [UInt8] {
        let context = unsafe EVP_MD_CTX_new()
        defer { unsafe EVP_MD_CTX_free(context) }
        var output = [UInt8](repeating: 0, count: Int(unsafe EVP_PKEY_get_size(handle)))
        var count = output.count
        guard unsafe EVP_DigestSignInit(context, nil, EVP_sha256(), nil, handle) == 1,
            unsafe EVP_DigestSign(context, &output, &count, message, message.count) == 1
        else { throw .fromLibrary("signing failed") }
        assert(count > 0 && count <= output.count, "libcrypto wrote \(count) bytes into \(output.count)")
        output.removeLast(output.count - count)
        return output
    }

    /// Whether the signature, in libcrypto's form, is this key's for SHA-256 of the message.
    func isValid(signature: [UInt8], for message: [UInt8]) -> Bool {
        let context = unsafe EVP_MD_CTX_new()
        defer { unsafe EVP_MD_CTX_free(context) }
        let isValid =
            unsafe EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, handle) == 1
            && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
        // A refused signature may leave an entry in the error queue; see CryptoError.fromLibrary.
        ERR_clear_error()
        return isValid
    }

    private func check(_ algorithm: Algorithm) throws(CryptoError) {
        let fits =
            switch algorithm {
            case .es256: unsafe EVP_PKEY_is_a(handle, "EC") == 1 && groupName == "prime256v1"
            case .rs256: unsafe EVP_PKEY_is_a(handle, "RSA") == 1 && EVP_PKEY_get_bits(handle) >= Algorithm.rsaBitsMin
            }
        guard fits else {
            throw CryptoError(message: "the key is of another kind: \(algorithm.name) needs \(algorithm.wanted)")
        }
    }

    private var groupName: String {
        var name = [CChar](repeating: 0, count: 64)
        var count = 0
        guard unsafe EVP_PKEY_get_group_name(handle, &name, name.count, &count) == 1 else { return "" }
        return String(decoding: name.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
