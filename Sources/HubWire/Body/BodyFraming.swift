/// The delimitation of a request's body (RFC 9112, 6).
package enum BodyFraming: Equatable, Sendable {
    /// No body follows.
    case none
    /// A body of that many bytes follows, at least one.
    case length(Int)
    case chunked

    /// Reads the framing from the two headers.
    /// - Parameters:
    ///   - contentLength: the header's value; nil when absent.
    ///   - transferEncoding: likewise.
    package static func read(contentLength: String?, transferEncoding: String?) throws(HeadRefusal) -> BodyFraming {
        if let transferEncoding {
            guard transferEncoding.lowercased() == "chunked", contentLength == nil else {
                throw HeadRefusal(400, "Transfer-Encoding must be chunked and stand without Content-Length")
            }
            return .chunked
        }
        guard let contentLength else { return .none }
        guard !contentLength.isEmpty, contentLength.utf8.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }),
            let length = Int(contentLength)
        else { throw HeadRefusal(400, "Content-Length must be one decimal number") }
        return length == 0 ? .none : .length(length)
    }
}
