/// Reason for a call without an answer.
///
/// Holds no part of the request: URLs contain device tokens, and headers contain credentials.
package struct HTTPClientError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Kind of failure.
    package enum Reason: Equatable, Sendable {
        /// The queue in front of libcurl is full.
        case queueFull
        /// The call waited longer in the queue than `CurlOptions.queueWaitMax`.
        case waitedTooLong
        /// The client was shut down before or during the call.
        case shutDown
        /// The call has a wrong URL, scheme, method or header: the caller's mistake.
        case invalidCall
        /// `HTTPCall.departs` withdrew it.
        case withdrawn
        /// libcurl failed: connection, TLS, protocol or time-out.
        case transport(CurlCode)
    }

    /// Extent to which the peer may have seen the request.
    package enum Delivery: Equatable, Sendable {
        /// Nothing: repeating it cannot duplicate anything.
        case notSent
        /// Possibly all of it: repeat only with the same ids.
        case outcomeUnknown
    }

    /// Kind of failure.
    package let reason: Reason
    /// Whether the request may be repeated.
    package let delivery: Delivery
    /// A sentence for logs: free of paths, headers and bodies.
    package let detail: String

    /// - Parameter detail: a sentence without any part of the request.
    package init(reason: Reason, delivery: Delivery, detail: String) {
        self.reason = reason
        self.delivery = delivery
        self.detail = detail
    }

    static let queueFull = HTTPClientError(
        reason: .queueFull, delivery: .notSent, detail: "the queue of outgoing requests is full")
    static let waitedTooLong = HTTPClientError(
        reason: .waitedTooLong, delivery: .notSent, detail: "the request waited too long for a free connection")

    static func shutDown(_ delivery: Delivery) -> HTTPClientError {
        HTTPClientError(reason: .shutDown, delivery: delivery, detail: "the HTTP client was shut down")
    }
    static func withdrawn(_ delivery: Delivery) -> HTTPClientError {
        HTTPClientError(reason: .withdrawn, delivery: delivery, detail: "the request was not to go any more")
    }
    static func invalidCall(_ detail: String) -> HTTPClientError {
        HTTPClientError(reason: .invalidCall, delivery: .notSent, detail: detail)
    }

    package var description: String { detail }
}
