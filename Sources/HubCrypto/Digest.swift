import COpenSSL

/// Message digests of whole messages.
package enum Digest {
    /// MD5, 16 bytes. Only for Pusher's `body_md5`, which is itself covered by an HMAC; worthless as protection alone.
    package static func md5(_ message: [UInt8]) -> [UInt8] {
        var output = [UInt8](repeating: 0, count: Int(MD5_DIGEST_LENGTH))
        unsafe tandem_openssl_md5(message, message.count, &output)
        return output
    }

    /// Whether `digits` are the message's MD5 in lower-case hexadecimal. Allocates no array.
    package static func isMD5(_ digits: ArraySlice<UInt8>, of message: [UInt8]) -> Bool {
        unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Int(MD5_DIGEST_LENGTH)) { output in
            unsafe tandem_openssl_md5(message, message.count, output.baseAddress)
            return unsafe Hex.isWritten(UnsafeBufferPointer(output), as: digits)
        }
    }

    /// MD5, 16 bytes, of bytes in any sequence.
    package static func md5(_ message: some Sequence<UInt8>) -> [UInt8] { md5(Array(message)) }

    /// SHA-1, 20 bytes. Only for the WebSocket handshake, where it proves only that the server read the request.
    package static func sha1(_ message: [UInt8]) -> [UInt8] {
        var output = [UInt8](repeating: 0, count: Int(SHA_DIGEST_LENGTH))
        unsafe tandem_openssl_sha1(message, message.count, &output)
        return output
    }

    /// SHA-256, 32 bytes, of bytes in any sequence.
    package static func sha256(_ message: some Sequence<UInt8>) -> [UInt8] { sha256(Array(message)) }

    /// SHA-256, 32 bytes.
    package static func sha256(_ message: [UInt8]) -> [UInt8] {
        var output = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
        unsafe tandem_openssl_sha256(message, message.count, &output)
        return output
    }
}

/// Keyed message digests (RFC 2104).
package enum HMAC {
    /// HMAC-SHA-256, 32 bytes. Any key length, the empty key included.
    package static func sha256(key: some Collection<UInt8>, message: some Collection<UInt8>) -> [UInt8] {
        HMACKey(Array(key)).code(of: Array(message))
    }
}

/// A secret prepared for HMAC-SHA-256, which halves the work per short message. A plain value of some 200 bytes, as
/// sensitive as the secret itself.
package struct HMACKey: Sendable {
    private let key: tandem_openssl_hmac_key

    /// A secret of any length, zero included.
    package init(_ secret: [UInt8]) {
        var key = tandem_openssl_hmac_key()
        unsafe tandem_openssl_hmac_prepare(&key, secret, secret.count)
        self.key = key
    }

    /// The secret is the text's UTF-8.
    package init(_ secret: String) { self.init(Array(secret.utf8)) }

    /// HMAC-SHA-256 of the message, 32 bytes.
    package func code(of message: [UInt8]) -> [UInt8] {
        var output = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
        unsafe withUnsafePointer(to: key) { unsafe tandem_openssl_hmac($0, message, message.count, &output) }
        return output
    }

    /// Whether `digits` are the message's code in lower-case hexadecimal. Allocates no array.
    package func isCode(_ digits: ArraySlice<UInt8>, of message: [UInt8]) -> Bool {
        unsafe message.withUnsafeBytes { unsafe isCode(digits, of: $0) }
    }

    /// As above.
    package func isCode(_ digits: ArraySlice<UInt8>, of message: UnsafeRawBufferPointer) -> Bool {
        unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Int(SHA256_DIGEST_LENGTH)) { output in
            unsafe withUnsafePointer(to: key) { unsafe tandem_openssl_hmac($0, message.baseAddress, message.count, output.baseAddress) }
            return unsafe Hex.isWritten(UnsafeBufferPointer(output), as: digits)
        }
    }
}

/// Compares in time that does not depend on the place of the first difference. The lengths are not secret.
package func constantTimeEquals(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    guard a.count == b.count else { return false }
    return unsafe CRYPTO_memcmp(a, b, a.count) == 0
}

/// As above, for any collections of bytes.
package func constantTimeEquals(_ a: some Collection<UInt8>, _ b: some Collection<UInt8>) -> Bool {
    constantTimeEquals(Array(a), Array(b))
}

/// Random bytes from libcrypto's generator, fit for keys and tokens.
package enum SecureRandom {
    /// Stops the program when the system gives no randomness, since weak keys would be worse.
    package static func bytes(_ count: Int) -> [UInt8] {
        var output = [UInt8](repeating: 0, count: count)
        let status = unsafe RAND_bytes(&output, CInt(count))
        precondition(status == 1, "libcrypto's random generator could not be seeded")
        return output
    }
}
