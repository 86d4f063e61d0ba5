internal import COpenSSL
internal import Glibc

/// Reads certificates and keys in PEM, and explains failures.
enum CertificateFile {
    /// The whole file, under a bound.
    static func read(_ path: String, as culprit: CertificateError.Culprit) throws(CertificateError) -> [UInt8] {
        // Non-blocking, because the path could be a pipe without a writer.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw unreadable(path, culprit) }
        defer { Descriptor.close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = unsafe Glibc.read(descriptor, &buffer, buffer.count)
            if count == 0 { return bytes }
            guard count > 0 else { throw unreadable(path, culprit) }
            bytes += buffer[..<count]
            guard bytes.count <= ServerCertificate.fileBytesMax else {
                throw CertificateError(culprit, "\(path) has more than \(ServerCertificate.fileBytesMax) bytes: it has to be a file in PEM")
            }
        }
    }

    private static func unreadable(_ path: String, _ culprit: CertificateError.Culprit) -> CertificateError {
        let reason = unsafe String(cString: strerror(errno))
        return CertificateError(culprit, "cannot read \(path) (\(reason)): it has to be a file in PEM that this process may read")
    }

    /// Every certificate of the file, at least one; the caller owns them.
    static func certificates(_ text: [UInt8], path: String) throws(CertificateError) -> [OpaquePointer] {
        assert(text.count <= ServerCertificate.fileBytesMax, "\(path) was read with \(text.count) bytes")
        guard let bio = unsafe BIO_new_mem_buf(text, Int32(text.count)) else { preconditionFailure("out of memory") }
        defer { unsafe BIO_free(bio) }
        var chain: [OpaquePointer] = unsafe []
        while let certificate = unsafe PEM_read_bio_X509(bio, nil, refusePassword, nil) { unsafe chain.append(certificate) }
        // The end of a good file: no further PEM block begins.
        let isEnd = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE
        if isEnd, unsafe !chain.isEmpty {
            ERR_clear_error()
            return unsafe chain
        }
        let count = unsafe chain.count
        for unsafe certificate in unsafe chain { unsafe X509_free(certificate) }
        if isEnd {
            throw CertificateError(
                .certificate,
                "\(path) holds no certificate: it has to be in PEM, beginning with -----BEGIN CERTIFICATE-----; "
                    + "a file in DER is converted by openssl x509 -inform der -in \(path)")
        }
        throw CertificateError(.certificate, "certificate number \(count + 1) in \(path) is damaged (\(reason())): copy the file again")
    }

    /// The file's private key; the caller owns it.
    static func key(_ text: [UInt8], path: String) throws(CertificateError) -> OpaquePointer {
        guard let bio = unsafe BIO_new_mem_buf(text, Int32(text.count)) else { preconditionFailure("out of memory") }
        defer { unsafe BIO_free(bio) }
        var wasAskedForPassword = false
        let key = unsafe withUnsafeMutablePointer(to: &wasAskedForPassword) { asked in
            unsafe PEM_read_bio_PrivateKey(bio, nil, refusePassword, asked)
        }
        if let key = unsafe key { return unsafe key }
        if wasAskedForPassword {
            throw CertificateError(
                .key,
                "the private key in \(path) is encrypted, and nobody can type its password when the server starts: "
                    + "decrypt it with openssl pkey -in \(path), into a file that only the server may read")
        }
        throw CertificateError(
            .key, "\(path) holds no private key that can be read: it has to be in PEM, beginning with -----BEGIN PRIVATE KEY-----")
    }

    /// Refuses OpenSSL's question for a password, which would otherwise go to the terminal.
    private static let refusePassword: @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32 = {
        _, _, _, asked in
        unsafe asked?.assumingMemoryBound(to: Bool.self).pointee = true
        return -1
    }

    /// The subject's common name, or the first DNS name.
    static func name(_ certificate: OpaquePointer) -> String {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            guard let base = buffer.baseAddress else { return "" }
            let length = unsafe tandem_openssl_certificate_name(certificate, base, buffer.count)
            return unsafe String(decoding: UnsafeRawBufferPointer(start: base, count: length), as: UTF8.self)
        }
    }

    /// Seconds since 1970; 0 for an unreadable time.
    static func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64 {
        var parts = unsafe tm()
        guard unsafe ASN1_TIME_to_tm(time, &parts) == 1 else { return 0 }
        return unsafe Int64(timegm(&parts))
    }

    /// The newest entry of this thread's error queue, as OpenSSL words it.
    static func reason() -> String {
        unsafe ERR_reason_error_string(ERR_peek_last_error()).map { unsafe String(cString: $0) } ?? "unknown reason"
    }
}
