import COpenSSL

/// A key that cannot be read or used, in a sentence for the operator. Never holds key material.
package struct CryptoError: Error, Equatable, CustomStringConvertible {
    /// The failure in one sentence.
    package let message: String
    package var description: String { message }

    /// One sentence, without key material.
    package init(message: String) {
        self.message = message
    }

    /// The failure of a libcrypto call, with libcrypto's own reason where it gave one.
    ///
    /// Empties this thread's error queue. libwebsockets and libcurl read the same queue after TLS operations and would
    /// take our entry for theirs.
    package static func fromLibrary(_ what: String) -> CryptoError {
        let code = ERR_peek_last_error()
        let reason = unsafe ERR_reason_error_string(code).map { unsafe String(cString: $0) }
        ERR_clear_error()
        return CryptoError(message: reason.map { "\(what) (\($0))" } ?? what)
    }
}
