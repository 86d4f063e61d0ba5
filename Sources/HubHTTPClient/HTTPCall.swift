/// One request to a peer.
package struct HTTPCall: Sendable {
    /// Upper case: `POST`, `GET`, …
    package var method: String
    /// Absolute. `http` is refused unless `CurlOptions.clearText` allows it.
    package var url: String
    /// Sent as written and in this order. A name or value with a control character makes the call invalid.
    package var headers: [(name: String, value: String)]
    /// Empty for `GET` and `HEAD`, which send none.
    package var body: [UInt8]
    /// Asked on the client's thread at the moment of sending, after every queue. False withdraws the call, which then ends with
    /// `HTTPClientError.Reason.withdrawn`. Nil: the call is sent.
    package var departs: (@Sendable () -> Bool)?

    /// - Parameters:
    ///   - url: absolute.
    ///   - departs: asked at the moment of sending; false withdraws the call.
    package init(
        method: String, url: String, headers: [(name: String, value: String)] = [], body: [UInt8] = [],
        departs: (@Sendable () -> Bool)? = nil
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.departs = departs
    }
}

/// The peer's answer with any status: an HTTP error is an answer, not a failure.
package struct HTTPAnswer: Sendable, Equatable {
    /// HTTP version of the answer; ordered.
    package enum Version: Int, Sendable, Comparable {
        case unknown = 0
        case http1 = 1
        case http2 = 2
        case http3 = 3
        package static func < (left: Version, right: Version) -> Bool { left.rawValue < right.rawValue }
    }

    /// The status code of the final answer.
    package var status: Int
    /// The version that the peer answered with.
    package var version: Version
    /// Lower-case names, only those listed in `CurlOptions.answerHeaders`; the last of repeated ones.
    package var headers: [String: String]
    /// At most `CurlOptions.answerBodyBytesMax` bytes.
    package var body: [UInt8]
    /// The body was longer than the kept part.
    package var bodyTruncated: Bool
    /// Connections that libcurl opened for this call.
    package var connectionsOpened: Int

    /// An answer whose body was kept whole, unless `bodyTruncated` says otherwise.
    package init(
        status: Int, version: Version, headers: [String: String] = [:], body: [UInt8] = [], bodyTruncated: Bool = false,
        connectionsOpened: Int = 0
    ) {
        self.status = status
        self.version = version
        self.headers = headers
        self.body = body
        self.bodyTruncated = bodyTruncated
        self.connectionsOpened = connectionsOpened
    }
}

/// Receives a call's outcome. Runs on the client's own thread and must not block it; see `CurlMulti.submit`.
package typealias HTTPCompletion = @Sendable (Result<HTTPAnswer, HTTPClientError>) -> Void
