internal import CLibCurl

/// A libcurl result code (`CURLcode`). An open set: an unnamed code survives as its number.
package struct CurlCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// libcurl's number, 0 for success.
    package let rawValue: Int32

    package init(rawValue: Int32) { self.rawValue = rawValue }

    /// The call was answered.
    package static let ok = CurlCode(rawValue: 0)
    /// The URL's scheme, or the answer, is of no protocol that libcurl was allowed.
    package static let unsupportedProtocol = CurlCode(rawValue: 1)
    /// libcurl had no memory, or could not begin.
    package static let failedInit = CurlCode(rawValue: 2)
    /// The URL cannot be parsed.
    package static let malformedURL = CurlCode(rawValue: 3)
    /// This build of libcurl lacks something.
    package static let notBuiltIn = CurlCode(rawValue: 4)
    /// The proxy's name has no address.
    package static let couldNotResolveProxy = CurlCode(rawValue: 5)
    /// The host's name has no address.
    package static let couldNotResolveHost = CurlCode(rawValue: 6)
    /// No connection to the host.
    package static let couldNotConnect = CurlCode(rawValue: 7)
    /// A fault in HTTP/2's framing.
    package static let http2 = CurlCode(rawValue: 16)
    /// The answer ended too early.
    package static let partialFile = CurlCode(rawValue: 18)
    /// Time-out; a limit of `CurlOptions`.
    package static let operationTimedOut = CurlCode(rawValue: 28)
    /// The TLS handshake failed.
    package static let tlsConnectError = CurlCode(rawValue: 35)
    /// The connection ended without an answer.
    package static let gotNothing = CurlCode(rawValue: 52)
    /// Sending failed.
    package static let sendError = CurlCode(rawValue: 55)
    /// Receiving failed.
    package static let receiveError = CurlCode(rawValue: 56)
    /// Our certificate cannot be used.
    package static let tlsClientCertificateProblem = CurlCode(rawValue: 58)
    /// No common cipher.
    package static let tlsCipher = CurlCode(rawValue: 59)
    /// The peer's certificate is not trusted.
    package static let tlsPeerFailedVerification = CurlCode(rawValue: 60)
    /// The required TLS level was not reached.
    package static let tlsLevelFailed = CurlCode(rawValue: 64)
    /// The file of authorities cannot be read.
    package static let tlsCAFileUnreadable = CurlCode(rawValue: 77)
    /// The peer's certificate has another issuer than required.
    package static let tlsIssuerError = CurlCode(rawValue: 83)
    /// The peer's key is not the pinned one.
    package static let tlsPinnedKeyMismatch = CurlCode(rawValue: 90)
    /// The peer's certificate was revoked.
    package static let tlsInvalidCertificateStatus = CurlCode(rawValue: 91)
    /// A stream of HTTP/2 was reset.
    package static let http2Stream = CurlCode(rawValue: 92)

    /// Codes that can occur only before the first request byte is sent, so a repeated request is no duplicate. All other codes,
    /// unknown ones included, leave the outcome open.
    private static let beforeSending: Set<CurlCode> = [
        .unsupportedProtocol, .failedInit, .malformedURL, .notBuiltIn, .couldNotResolveProxy, .couldNotResolveHost,
        .couldNotConnect, .tlsConnectError, .tlsClientCertificateProblem, .tlsCipher, .tlsPeerFailedVerification,
        .tlsLevelFailed, .tlsCAFileUnreadable, .tlsIssuerError, .tlsPinnedKeyMismatch, .tlsInvalidCertificateStatus,
    ]

    /// True if a request that failed with this code never reached the peer.
    package var meansNotSent: Bool { Self.beforeSending.contains(self) }

    /// libcurl's own message for the code.
    package var description: String {
        // The text is a constant of libcurl and never freed.
        guard let text = unsafe curl_easy_strerror(CURLcode(rawValue: UInt32(bitPattern: rawValue))) else {
            return "code \(rawValue)"
        }
        return unsafe String(cString: text)
    }
}
