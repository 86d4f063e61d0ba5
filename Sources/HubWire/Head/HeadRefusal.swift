package import HubCore

/// The refusal of a request by its head: the answer's status, sentence and header. The connection closes after the
/// answer, because the bytes that follow may be a body or another request.
package struct HeadRefusal: Error, Equatable, Sendable {
    /// The answer's status code.
    package let status: Int
    /// The sentence of the answer's body.
    package let sentence: String
    /// A header that the status requires.
    package let header: Header?

    /// A header by name and value.
    package struct Header: Equatable, Sendable {
        /// As it is written.
        package let name: String
        /// Without a line break.
        package let value: String
    }

    init(_ status: Int, _ sentence: String, header: String? = nil, _ value: String = "") {
        assert((400...599).contains(status), "a refusal with status \(status)")
        self.status = status
        self.sentence = sentence
        self.header = header.map { Header(name: $0, value: value) }
    }

    /// The answer: `{"error": sentence}`.
    package var response: HTTPResponse {
        var response = HTTPResponse.error(status, sentence)
        if let header { response.headers.append((header.name, header.value)) }
        return response
    }
}
