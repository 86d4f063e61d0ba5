import COpenSSL

/// A P-256 private key for JSON Web Signatures (RFC 7518, 3.4), used for APNs provider tokens.
package struct ES256PrivateKey: Sendable {
    private let key: AsymmetricKey

    /// Reads an unencrypted PEM file, PKCS #8 (Apple's .p8) or SEC 1.
    package init(pem: String) throws(CryptoError) {
        key = try AsymmetricKey(privatePEM: pem, for: .es256)
    }

    private init(key: AsymmetricKey) {
        self.key = key
    }

    /// A new key pair, for tests and simulators: Apple hands out the real ones.
    package static func generate() -> ES256PrivateKey {
        ES256PrivateKey(key: .generate(.es256, rsaBits: 0))
    }

    /// R and S, 32 bytes each, big-endian, over SHA-256 of the message.
    package func signature(for message: [UInt8]) throws(CryptoError) -> [UInt8] {
        try ES256Signature.raw(fromDER: key.signature(for: message))
    }

    /// The key as PKCS #8 in PEM, unencrypted.
    package var pem: String { key.privatePEM }
    /// The public half, as `ES256PublicKey` reads it.
    package var publicKeyPEM: String { key.publicPEM }
}

/// A P-256 public key that verifies JSON Web Signatures.
package struct ES256PublicKey: Sendable {
    private let key: AsymmetricKey

    /// Reads a PEM file with `PUBLIC KEY`.
    package init(pem: String) throws(CryptoError) {
        key = try AsymmetricKey(publicPEM: pem, for: .es256)
    }

    /// False for every signature that is not 64 bytes R || S of this key over SHA-256 of the message.
    package func isValid(signature: [UInt8], for message: [UInt8]) -> Bool {
        guard let der = ES256Signature.der(fromRaw: signature) else { return false }
        return key.isValid(signature: der, for: message)
    }
}

/// The two spellings of an ECDSA signature: libcrypto's DER sequence and the two fixed-width integers of RFC 7518, 3.4.
enum ES256Signature {
    static let integerBytes = 32

    /// Each integer padded with zeros on the left: one signature in 256 has an R or S that is shorter than 32 bytes.
    static func raw(fromDER der: [UInt8]) throws(CryptoError) -> [UInt8] {
        var output = [UInt8](repeating: 0, count: 2 * integerBytes)
        let isWritten = unsafe der.withUnsafeBufferPointer { der in
            var position = der.baseAddress
            guard let signature = unsafe d2i_ECDSA_SIG(nil, &position, der.count) else { return false }
            defer { unsafe ECDSA_SIG_free(signature) }
            return unsafe output.withUnsafeMutableBufferPointer { output in
                guard let start = output.baseAddress else { return false }
                let width = CInt(integerBytes)
                return unsafe BN_bn2binpad(ECDSA_SIG_get0_r(signature), start, width) == width
                    && BN_bn2binpad(ECDSA_SIG_get0_s(signature), start + integerBytes, width) == width
            }
        }
        guard isWritten else { throw .fromLibrary("libcrypto made a signature that is no P-256 signature") }
        return output
    }

    /// Nil when the length is wrong.
    static func der(fromRaw raw: [UInt8]) -> [UInt8]? {
        guard raw.count == 2 * integerBytes else { return nil }
        let signature = unsafe ECDSA_SIG_new()
        defer { unsafe ECDSA_SIG_free(signature) }
        let (r, s) = unsafe raw.withUnsafeBufferPointer { raw in
            unsafe (
                BN_bin2bn(raw.baseAddress, CInt(integerBytes), nil),
                BN_bin2bn(raw.baseAddress.map { unsafe $0 + integerBytes }, CInt(integerBytes), nil)
            )
        }
        // From here on the signature owns both numbers.
        guard unsafe ECDSA_SIG_set0(signature, r, s) == 1 else {
            unsafe BN_free(r)
            unsafe BN_free(s)
            return nil
        }
        var output = [UInt8](repeating: 0, count: max(0, Int(unsafe i2d_ECDSA_SIG(signature, nil))))
        let count = unsafe output.withUnsafeMutableBufferPointer { output in
            var position = output.baseAddress
            return unsafe i2d_ECDSA_SIG(signature, &position)
        }
        assert(count <= 0 || Int(count) == output.count, "libcrypto measured \(output.count) bytes and wrote \(count)")
        return count > 0 ? output : nil
    }
}
