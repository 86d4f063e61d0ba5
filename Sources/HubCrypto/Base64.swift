import COpenSSL

/// Base64 with its padding (RFC 4648, 4).
package enum Base64 {
    /// The text of `bytes` in ASCII.
    package static func encode(_ bytes: [UInt8]) -> [UInt8] {
        let count = (bytes.count + 2) / 3 * 4
        // libcrypto writes a zero behind the text.
        return unsafe [UInt8](unsafeUninitializedCapacity: count + 1) { output, written in
            written = unsafe Int(EVP_EncodeBlock(output.baseAddress, bytes, CInt(bytes.count)))
            assert(written == count, "\(bytes.count) bytes have \(written) characters, and not \(count)")
        }
    }
}
