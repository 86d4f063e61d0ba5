import COpenSSL

/// Text in PEM on its way to and from libcrypto's functions. Their handles are valid during each call only.
package enum PEMText {
    /// The handle that `body` makes of the text; nil for an empty text.
    package static func read(_ pem: String, _ body: (OpaquePointer?) -> OpaquePointer?) -> OpaquePointer? {
        let bytes = Array(pem.utf8)
        guard !bytes.isEmpty, let count = CInt(exactly: bytes.count) else { return nil }
        return unsafe bytes.withUnsafeBytes { bytes in
            let source = unsafe BIO_new_mem_buf(bytes.baseAddress, count)
            defer { unsafe BIO_free(source) }
            return unsafe body(source)
        }
    }

    /// The text that `body` writes; it returns libcrypto's status.
    package static func written(_ body: (OpaquePointer?) -> CInt) -> String {
        let target = unsafe BIO_new(BIO_s_mem())
        defer { unsafe BIO_free(target) }
        let status = unsafe body(target)
        precondition(status == 1, "libcrypto cannot write PEM")
        var bytes: UnsafePointer<CChar>?
        let count = unsafe tandem_openssl_memory(target, &bytes)
        return unsafe String(decoding: UnsafeRawBufferPointer(start: bytes, count: count), as: UTF8.self)
    }

    /// The private key of an unencrypted text; the caller owns it.
    package static func privateKey(_ pem: String) -> OpaquePointer? {
        unsafe read(pem) { unsafe PEM_read_bio_PrivateKey($0, nil, refusePassword, nil) }
    }

    /// The public key of a text with `PUBLIC KEY`; the caller owns it.
    static func publicKey(_ pem: String) -> OpaquePointer? {
        unsafe read(pem) { unsafe PEM_read_bio_PUBKEY($0, nil, refusePassword, nil) }
    }

    /// The first certificate of a text; the caller owns it.
    package static func certificate(_ pem: String) -> OpaquePointer? {
        unsafe read(pem) { unsafe PEM_read_bio_X509($0, nil, refusePassword, nil) }
    }

    /// Answers libcrypto's question for a password with "none": its default asks at the terminal and would hang the server.
    private static let refusePassword: @convention(c) (UnsafeMutablePointer<CChar>?, CInt, CInt, UnsafeMutableRawPointer?) -> CInt =
        { _, _, _, _ in -1 }
}
