import COpenSSL
import Glibc
import HubCrypto

/// Turns OpenSSL's error queue into a one-line error and empties it, because later calls on this thread read the same queue.
enum OpenSSLFailure {
    static func error(_ what: String) -> GatewayError {
        let code = ERR_peek_last_error()
        let reason = unsafe ERR_reason_error_string(code).map { unsafe String(cString: $0) }
        ERR_clear_error()
        return GatewayError(reason.map { "\(what): \($0)" } ?? what)
    }
}

/// A private key in the form for OpenSSL's X.509 functions.
@safe final class X509Key {
    private let handle: OpaquePointer

    /// Reads an unencrypted PEM file.
    init(pem: String) throws(GatewayError) {
        let handle = unsafe MemoryBIO(pem).read { unsafe PEM_read_bio_PrivateKey($0, nil, refusePassword, nil) }
        guard let handle = unsafe handle else { throw OpenSSLFailure.error("cannot read a private key in PEM") }
        unsafe self.handle = unsafe handle
    }

    deinit { unsafe EVP_PKEY_free(handle) }

    /// Passes the handle to `body`, valid during the call only.
    func withHandle<Result>(_ body: (OpaquePointer) -> Result) -> Result { unsafe body(handle) }
}

/// An X.509 certificate: read from PEM, or issued here.
@safe final class X509Certificate {
    private let handle: OpaquePointer

    init(pem: String) throws(GatewayError) {
        let handle = unsafe MemoryBIO(pem).read { unsafe PEM_read_bio_X509($0, nil, refusePassword, nil) }
        guard let handle = unsafe handle else { throw OpenSSLFailure.error("cannot read a certificate in PEM") }
        unsafe self.handle = unsafe handle
    }

    private init(blank: Void) throws(GatewayError) {
        guard let handle = unsafe X509_new() else { throw OpenSSLFailure.error("cannot make a certificate") }
        unsafe self.handle = unsafe handle
    }

    deinit { unsafe X509_free(handle) }

    func withHandle<Result>(_ body: (OpaquePointer) -> Result) -> Result { unsafe body(handle) }

    var pem: String {
        let bio = MemoryBIO("")
        let status = unsafe bio.write { unsafe PEM_write_bio_X509($0, handle) }
        precondition(status == 1, "OpenSSL cannot write a certificate in PEM")
        return bio.text
    }

    /// Whether the certificate has this key's public half and is valid for at least another day.
    func isUsable(with key: X509Key) -> Bool {
        defer { ERR_clear_error() }
        var tomorrow = time(nil) + 86_400
        return unsafe key.withHandle { unsafe X509_check_private_key(handle, $0) } == 1
            && X509_cmp_time(X509_get0_notAfter(handle), &tomorrow) > 0
    }

    /// Issues a self-signed authority, or with an issuer a server's certificate for the names.
    /// - Parameter names: in OpenSSL's syntax, `DNS:localhost` or `IP:127.0.0.1`; ignored for an authority.
    static func issue(
        commonName: String, key: X509Key, names: [String], issuer: (certificate: X509Certificate, key: X509Key)?, days: Int32
    ) throws(GatewayError) -> X509Certificate {
        let certificate = try X509Certificate(blank: ())
        let isIssued = unsafe certificate.withHandle { handle in
            unsafe fill(handle, commonName: commonName, key: key, names: names, issuer: issuer, days: days)
        }
        guard isIssued else { throw OpenSSLFailure.error("cannot issue the certificate of \(commonName)") }
        return certificate
    }

    private static func fill(
        _ handle: OpaquePointer, commonName: String, key: X509Key, names: [String],
        issuer: (certificate: X509Certificate, key: X509Key)?, days: Int32
    ) -> Bool {
        // A random positive serial, so that two authorities do not collide in one trust store.
        let serial = SecureRandom.bytes(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) } >> 1
        let name = unsafe X509_get_subject_name(handle)
        let text = Array(commonName.utf8)
        guard unsafe X509_set_version(handle, 2) == 1,
            unsafe ASN1_INTEGER_set_uint64(X509_get_serialNumber(handle), serial) == 1,
            // Valid since an hour ago, for machines whose clocks differ a little.
            unsafe X509_gmtime_adj(X509_getm_notBefore(handle), -3600) != nil,
            unsafe X509_time_adj_ex(X509_getm_notAfter(handle), days, 0, nil) != nil,
            unsafe X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, text, Int32(text.count), -1, 0) == 1,
            unsafe key.withHandle({ unsafe X509_set_pubkey(handle, $0) }) == 1
        else { return false }

        let extensions: [(Int32, String)] =
            issuer == nil
            ? [
                (NID_basic_constraints, "critical,CA:TRUE,pathlen:0"), (NID_key_usage, "critical,keyCertSign,cRLSign"),
                (NID_subject_key_identifier, "hash"),
            ]
            : [
                (NID_basic_constraints, "critical,CA:FALSE"), (NID_key_usage, "critical,digitalSignature"),
                (NID_ext_key_usage, "serverAuth"), (NID_subject_alt_name, names.joined(separator: ",")),
                (NID_subject_key_identifier, "hash"), (NID_authority_key_identifier, "keyid"),
            ]
        let signer = issuer?.key ?? key
        let add = { (authority: OpaquePointer) in
            unsafe X509_set_issuer_name(handle, X509_get_subject_name(authority)) == 1
                && extensions.allSatisfy { unsafe addExtension($0.0, $0.1, to: handle, issuer: authority) }
        }
        guard let issuer else {
            return unsafe add(handle) && signer.withHandle { unsafe X509_sign(handle, $0, EVP_sha256()) } > 0
        }
        return unsafe issuer.certificate.withHandle(add) && signer.withHandle { unsafe X509_sign(handle, $0, EVP_sha256()) } > 0
    }

    private static func addExtension(_ id: Int32, _ value: String, to handle: OpaquePointer, issuer: OpaquePointer) -> Bool {
        var context = unsafe X509V3_CTX()
        unsafe X509V3_set_ctx(&context, issuer, handle, nil, nil, 0)
        guard let item = unsafe X509V3_EXT_conf_nid(nil, &context, id, value) else { return false }
        defer { unsafe X509_EXTENSION_free(item) }
        return unsafe X509_add_ext(handle, item, -1) == 1
    }
}

/// OpenSSL's in-memory file.
@safe private final class MemoryBIO {
    private let handle: OpaquePointer?

    init(_ text: String) {
        unsafe handle = unsafe BIO_new(BIO_s_mem())
        let bytes = Array(text.utf8)
        if !bytes.isEmpty { unsafe BIO_write(handle, bytes, Int32(clamping: bytes.count)) }
    }

    deinit { unsafe BIO_free(handle) }

    func read(_ body: (OpaquePointer?) -> OpaquePointer?) -> OpaquePointer? { unsafe body(handle) }
    func write(_ body: (OpaquePointer?) -> Int32) -> Int32 { unsafe body(handle) }

    var text: String {
        var bytes: UnsafePointer<CChar>?
        let count = unsafe tandem_openssl_memory(handle, &bytes)
        return unsafe String(decoding: UnsafeRawBufferPointer(start: bytes, count: count), as: UTF8.self)
    }
}

/// Refuses OpenSSL's password prompt, which by default asks at the terminal.
private let refusePassword: @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32 =
    { _, _, _, _ in -1 }
