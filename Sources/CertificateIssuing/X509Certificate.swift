internal import COpenSSL
internal import Glibc
package import HubCrypto

/// An X.509 certificate of the simulators and of tests: read from PEM, or issued here.
@safe package final class X509Certificate {
    /// The signer of a certificate.
    package typealias Issuer = (certificate: X509Certificate, key: X509Key)

    private let handle: OpaquePointer

    /// Reads the first certificate of a PEM file.
    package init(pem: String) throws(CryptoError) {
        guard let handle = unsafe PEMText.certificate(pem) else { throw .fromLibrary("cannot read a certificate in PEM") }
        unsafe self.handle = unsafe handle
    }

    /// Issues a certificate.
    /// - Parameters:
    ///   - names: a server's names in OpenSSL's syntax, `DNS:localhost` or `IP:127.0.0.1`; empty for an authority.
    ///   - issuer: nil for a self-signed certificate.
    ///   - validity: seconds from now.
    package init(
        commonName: String, key: X509Key, names: [String] = [], issuer: Issuer? = nil, validity: ClosedRange<Int>
    ) throws(CryptoError) {
        guard let handle = unsafe X509_new() else { throw .fromLibrary("cannot make a certificate") }
        unsafe self.handle = unsafe handle
        guard fill(commonName: commonName, key: key, names: names, issuer: issuer ?? (self, key), validity: validity) else {
            throw .fromLibrary("cannot issue the certificate of \(commonName)")
        }
    }

    deinit { unsafe X509_free(handle) }

    /// Passes the handle to `body`, valid during the call only.
    package func withHandle<Result>(_ body: (OpaquePointer) -> Result) -> Result { unsafe body(handle) }

    package var pem: String { unsafe PEMText.written { unsafe PEM_write_bio_X509($0, handle) } }

    /// Whether the certificate has this key's public half and is valid for at least another day.
    package func isUsable(with key: X509Key) -> Bool {
        defer { ERR_clear_error() }
        var tomorrow = time(nil) + 86_400
        return unsafe key.withHandle { unsafe X509_check_private_key(handle, $0) } == 1
            && X509_cmp_time(X509_get0_notAfter(handle), &tomorrow) > 0
    }

    private func fill(commonName: String, key: X509Key, names: [String], issuer: Issuer, validity: ClosedRange<Int>) -> Bool {
        // A random positive serial, so that two authorities do not collide in one trust store.
        let serial = SecureRandom.bytes(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) } >> 1
        let subject = unsafe X509_get_subject_name(handle)
        let text = Array(commonName.utf8)
        // The authority's key identifier names the subject's, which must stand before it in a self-signed certificate.
        var extensions: [(Int32, String)] = [(NID_subject_key_identifier, "hash"), (NID_authority_key_identifier, "keyid")]
        if names.isEmpty {
            extensions += [(NID_basic_constraints, "critical,CA:TRUE"), (NID_key_usage, "critical,keyCertSign,cRLSign")]
        } else {
            extensions += [
                (NID_basic_constraints, "critical,CA:FALSE"), (NID_key_usage, "critical,digitalSignature"),
                (NID_ext_key_usage, "serverAuth"), (NID_subject_alt_name, names.joined(separator: ",")),
            ]
        }
        return unsafe X509_set_version(handle, 2) == 1
            && ASN1_INTEGER_set_uint64(X509_get_serialNumber(handle), serial) == 1
            && X509_gmtime_adj(X509_getm_notBefore(handle), validity.lowerBound) != nil
            && X509_gmtime_adj(X509_getm_notAfter(handle), validity.upperBound) != nil
            && X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, text, Int32(text.count), -1, 0) == 1
            && X509_set_issuer_name(handle, X509_get_subject_name(issuer.certificate.handle)) == 1
            && key.withHandle { unsafe X509_set_pubkey(handle, $0) } == 1
            && extensions.allSatisfy { addExtension($0.0, $0.1, issuer: issuer.certificate) }
            && issuer.key.withHandle { unsafe X509_sign(handle, $0, EVP_sha256()) } > 0
    }

    private func addExtension(_ id: Int32, _ value: String, issuer: X509Certificate) -> Bool {
        var context = unsafe X509V3_CTX()
        unsafe X509V3_set_ctx(&context, issuer.handle, handle, nil, nil, 0)
        guard let item = unsafe X509V3_EXT_conf_nid(nil, &context, id, value) else { return false }
        defer { unsafe X509_EXTENSION_free(item) }
        return unsafe X509_add_ext(handle, item, -1) == 1
    }
}
