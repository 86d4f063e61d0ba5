import COpenSSL

/// Message digests of whole messages.
package enum Digest {
    /// MD5, 16 bytes. Only for Pusher's `body_md5`, which is itself covered by an HMAC; worthless as protection alone.
    package static func md5(_ message: some Sequence<UInt8>) -> [UInt8] {
        digest(message, algorithm: "MD5", byteCount: 16)
    }

    /// SHA-256, 32 bytes.
    package static func sha256(_ message: some Sequence<UInt8>) -> [UInt8] {
        digest(message, algorithm: "SHA256", byteCount: 32)
    }

    private static func digest(_ message: some Sequence<UInt8>, algorithm: String, byteCount: Int) -> [UInt8] {
        unsafe withBytes(of: message) { message in
            var output = [UInt8](repeating: 0, count: byteCount)
            var written = 0
            let status = unsafe EVP_Q_digest(
                nil, algorithm, nil, message.baseAddress, message.count, &output, &written)
            // Only a libcrypto built without the algorithm, or without memory, fails here: nothing a caller could mend.
            precondition(status == 1 && written == byteCount, "libcrypto has no \(algorithm)")
            return output
        }
    }
}

/// Keyed message digests (RFC 2104).
package enum HMAC {
    /// HMAC-SHA-256, 32 bytes. Any key length, the empty key included.
    package static func sha256(key: some Collection<UInt8>, message: some Collection<UInt8>) -> [UInt8] {
        unsafe withBytes(of: key) { key in
            unsafe withBytes(of: message) { message in
                let context = unsafe MACTemplate.sha256.copy()
                defer { unsafe EVP_MAC_CTX_free(context) }
                var output = [UInt8](repeating: 0, count: 32)
                var written = 0
                // A null key means "the key set before" to libcrypto and fails; the empty key therefore needs an address.
                var noKey: UInt8 = 0
                let isComputed = unsafe withUnsafePointer(to: &noKey) { placeholder in
                    unsafe EVP_MAC_init(
                        context, key.baseAddress?.assumingMemoryBound(to: UInt8.self) ?? placeholder, key.count, nil) == 1
                        && EVP_MAC_update(context, message.baseAddress?.assumingMemoryBound(to: UInt8.self), message.count) == 1
                        && EVP_MAC_final(context, &output, &written, output.count) == 1
                }
                precondition(isComputed && written == 32, "libcrypto failed to compute an HMAC-SHA256")
                return output
            }
        }
    }
}

/// A MAC context without a key, made once and copied for each use: looking the algorithms up by their names takes
/// longer than the computation.
///
/// `@unchecked Sendable`: never written after its initializer; copying only reads it.
@safe private final class MACTemplate: @unchecked Sendable {
    static let sha256 = MACTemplate()

    private let context: OpaquePointer

    private init() {
        guard let context = unsafe tandem_openssl_hmac_sha256() else {
            preconditionFailure("libcrypto has no HMAC-SHA256")
        }
        unsafe self.context = unsafe context
    }

    /// A context of the caller's own, to be freed with `EVP_MAC_CTX_free`.
    func copy() -> OpaquePointer? {
        unsafe EVP_MAC_CTX_dup(context)
    }
}

/// Compares without the time taken telling where the first difference is. The lengths are not secret.
package func constantTimeEquals(_ a: some Collection<UInt8>, _ b: some Collection<UInt8>) -> Bool {
    guard a.count == b.count else { return false }
    return unsafe withBytes(of: a) { a in
        unsafe withBytes(of: b) { b in
            guard let first = a.baseAddress, let second = b.baseAddress else { return a.count == b.count }
            return unsafe CRYPTO_memcmp(first, second, a.count) == 0
        }
    }
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

/// The bytes in one piece: borrowed where the sequence stores them so, copied otherwise.
func withBytes<Result>(of bytes: some Sequence<UInt8>, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    if let result = bytes.withContiguousStorageIfAvailable({ unsafe body(UnsafeRawBufferPointer($0)) }) {
        return result
    }
    return unsafe Array(bytes).withUnsafeBytes(body)
}
