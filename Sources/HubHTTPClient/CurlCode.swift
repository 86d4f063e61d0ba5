internal import CLibCurl

/// A libcurl result code (`CURLcode`). An open set: an unnamed code survives as its number.
package struct CurlCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    package let rawValue: Int32

    package init(rawValue: Int32) { self.rawValue = rawValue }

    package static let ok = CurlCode(rawValue: 0)
    package static let unsupportedProtocol = CurlCode(rawValue: 1)
    package static let failedInit = CurlCode(rawValue: 2)
    package static let malformedURL = CurlCode(rawValue: 3)
    package static let notBuiltIn = CurlCode(rawValue: 4)
    package static let couldNotResolveProxy = CurlCode(rawValue: 5)
    package static let couldNotResolveHost = CurlCode(rawValue: 6)
    package static let couldNotConnect = CurlCode(rawValue: 7)
    package static let http2 = CurlCode(rawValue: 16)
    package static let partialFile = CurlCode(rawValue: 18)
    package static let operationTimedOut = CurlCode(rawValue: 28)
    package static let tlsConnectError = CurlCode(rawValue: 35)
    package static let gotNothing = CurlCode(rawValue: 52)
    package static let sendError = CurlCode(rawValue: 55)
    package static let receiveError = CurlCode(rawValue: 56)
    package static let tlsClientCertificateProblem = CurlCode(rawValue: 58)
    package static let tlsCipher = CurlCode(rawValue: 59)
    package static let tlsPeerFailedVerification = CurlCode(rawValue: 60)
    package static let tlsLevelFailed = CurlCode(rawValue: 64)
    package static let tlsCAFileUnreadable = CurlCode(rawValue: 77)
    package static let tlsIssuerError = CurlCode(rawValue: 83)
    package static let tlsPinnedKeyMismatch = CurlCode(rawValue: 90)
    package static let tlsInvalidCertificateStatus = CurlCode(rawValue: 91)
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
