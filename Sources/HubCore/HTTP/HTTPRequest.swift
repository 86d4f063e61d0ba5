/// One HTTP request as the listener hands it to the API: everything already bounded, nothing interpreted yet.
package struct HTTPRequest: Sendable {
    /// Upper case.
    package var method: String
    /// Percent-decoded, begins with `/`, without the query.
    package var path: String
    /// Decoded parameters in the order received.
    package var query: HTTPQuery
    /// Lower-case names; only the headers that Tandem reads.
    package var headers: [String: String]
    /// The whole body without its framing; empty while only the head is known.
    package var body: [UInt8]
    /// The peer's address without its port; empty when unknown.
    package var remoteAddress: String

    /// A request whose parameters are given as decoded pairs.
    package init(
        method: String, path: String, query: [(name: String, value: String)] = [], headers: [String: String] = [:],
        body: [UInt8] = [], remoteAddress: String = ""
    ) {
        self.init(method: method, path: path, query: HTTPQuery(query), headers: headers, body: body, remoteAddress: remoteAddress)
    }

    /// A request whose parameters are decoded already.
    package init(
        method: String, path: String, query: HTTPQuery, headers: [String: String] = [:], body: [UInt8] = [], remoteAddress: String = ""
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body
        self.remoteAddress = remoteAddress
    }

    /// The first parameter of that name.
    package func parameter(_ name: StaticString) -> String? {
        query.value(name)
    }
}

/// One HTTP response; the listener adds `Content-Length` and the connection headers.
package struct HTTPResponse: Sendable {
    /// The status code, such as 200.
    package var status: Int
    /// The value of `Content-Type`.
    package var contentType: String
    /// The whole body; its length becomes `Content-Length`.
    package var body: [UInt8]
    /// Further headers, names as written.
    package var headers: [(name: String, value: String)]

    /// A final response, status 200 to 599.
    package init(
        status: Int, contentType: String = "application/json", body: [UInt8], headers: [(name: String, value: String)] = []
    ) {
        assert((200...599).contains(status), "status \(status) is no final one")
        self.status = status
        self.contentType = contentType
        self.body = body
        self.headers = headers
    }

    /// A JSON answer.
    package static func json(_ value: JSONValue, status: Int = 200) -> HTTPResponse {
        HTTPResponse(status: status, body: value.serialized())
    }

    /// `{"error": sentence}`: the fault and the remedy. A 503 also carries `Retry-After`.
    package static func error(_ status: Int, _ sentence: String) -> HTTPResponse {
        var response = HTTPResponse.json(["error": .string(sentence)], status: status)
        if status == 503 { response.headers = [("Retry-After", "1")] }
        return response
    }
}

/// The body that may follow a request's head.
package enum BodyLimit: Sendable {
    /// At most so many bytes; the transport's own bound holds in any case.
    case bytes(Int)
    /// No body: the request gets this response.
    case refused(HTTPResponse)
}
