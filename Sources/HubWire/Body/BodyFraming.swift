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
        guard let length = number(contentLength) else { throw HeadRefusal(400, "Content-Length must be one decimal number") }
        return length == 0 ? .none : .length(length)
    }

    /// Nil for everything but decimal digits whose value fits.
    private static func number(_ text: String) -> Int? {
        var number = 0
        for byte in text.utf8 {
            guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return nil }
            let (tens, isTooLong) = number.multipliedReportingOverflow(by: 10)
            let (sum, isTooLarge) = tens.addingReportingOverflow(Int(byte - UInt8(ascii: "0")))
            if isTooLong || isTooLarge { return nil }
            number = sum
        }
        return text.isEmpty ? nil : number
    }
}
