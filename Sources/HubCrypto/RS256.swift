/// An RSA private key for JSON Web Signatures (RFC 7518, 3.3), used for Google service accounts.
package struct RS256PrivateKey: Sendable {
    private let key: AsymmetricKey

    /// Reads an unencrypted PEM file, PKCS #8 or PKCS #1, of at least 2048 bits.
    package init(pem: String) throws(CryptoError) {
        key = try AsymmetricKey(privatePEM: pem, for: .rs256)
    }

    private init(key: AsymmetricKey) {
        self.key = key
    }

    /// A new key. Takes tens of milliseconds at 2048 bits and much longer at more.
    package static func generate(bits: Int = 2048) -> RS256PrivateKey {
        RS256PrivateKey(key: .generate(.rs256, rsaBits: bits))
    }

    /// PKCS #1 v1.5 over SHA-256 of the message, as long as the modulus.
    package func signature(for message: [UInt8]) throws(CryptoError) -> [UInt8] {
        try key.signature(for: message)
    }

    /// The key as PKCS #8 in PEM, unencrypted.
    package var pem: String { key.privatePEM }
    /// The public half, as `RS256PublicKey` reads it.
    package var publicKeyPEM: String { key.publicPEM }
}

/// An RSA public key that verifies JSON Web Signatures.
package struct RS256PublicKey: Sendable {
    private let key: AsymmetricKey

    /// Reads a PEM file with `PUBLIC KEY`.
    package init(pem: String) throws(CryptoError) {
        key = try AsymmetricKey(publicPEM: pem, for: .rs256)
    }

    /// False for every signature that is not this key's PKCS #1 v1.5 over SHA-256 of the message.
    package func isValid(signature: [UInt8], for message: [UInt8]) -> Bool {
        key.isValid(signature: signature, for: message)
    }
}
