package import HubCore

/// Why a request cannot be served, as its head says already: the answer's status, its sentence and further headers. The connection ends
/// behind the answer, because what follows cannot be told apart from another request.
package struct HeadRefusal: Error, Equatable, Sendable {
    package let status: Int
    package let sentence: String
    /// A header that the status asks for.
    package let header: Header?

    package struct Header: Equatable, Sendable {
        package let name: String
        package let value: String
    }

    init(_ status: Int, _ sentence: String, header: String? = nil, _ value: String = "") {
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
