internal import COpenSSL
package import HubCrypto

/// A private key in the form for OpenSSL's X.509 functions.
@safe package final class X509Key {
    private let handle: OpaquePointer

    /// Reads an unencrypted PEM file.
    package init(pem: String) throws(CryptoError) {
        guard let handle = unsafe PEMText.privateKey(pem) else { throw .fromLibrary("cannot read a private key in PEM") }
        unsafe self.handle = unsafe handle
    }

    deinit { unsafe EVP_PKEY_free(handle) }

    /// Passes the handle to `body`, valid during the call only.
    package func withHandle<Result>(_ body: (OpaquePointer) -> Result) -> Result { unsafe body(handle) }

    /// The key as PKCS #8 in PEM, encrypted with the password.
    package func pem(password: String) -> String {
        let bytes = Array(password.utf8)
        return unsafe PEMText.written { unsafe PEM_write_bio_PrivateKey($0, handle, EVP_aes_128_cbc(), bytes, Int32(bytes.count), nil, nil) }
    }
}
