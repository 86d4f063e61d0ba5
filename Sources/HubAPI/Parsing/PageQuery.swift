internal import HubCore

/// Numbers in a request's query, read with their bounds.
struct PageQuery {
    let request: HTTPRequest

    /// - Returns: `fallback` if the request lacks the parameter.
    func number(_ name: StaticString, in range: ClosedRange<Int64>, otherwise fallback: Int64) throws(APIError) -> Int64 {
        assert(range.contains(fallback), "\(name) is \(fallback) when absent, which is not in \(range)")
        guard let text = request.parameter(name) else { return fallback }
        guard let number = Int64(text), range.contains(number) else {
            let bound = range.upperBound == .max ? "from \(range.lowerBound) on" : "from \(range.lowerBound) to \(range.upperBound)"
            throw APIError(400, "\(name) must be a number \(bound)")
        }
        return number
    }

    /// Entries per page.
    func limit(max: Int, otherwise fallback: Int) throws(APIError) -> Int {
        Int(try number("limit", in: 1...Int64(max), otherwise: Int64(fallback)))
    }

    /// Whether the request has the parameter, which has one possible value.
    func asks(for word: String, in name: StaticString) throws(APIError) -> Bool {
        guard let text = request.parameter(name) else { return false }
        guard text == word else { throw APIError(400, "\(name) has to be \(word), or left out") }
        return true
    }
}
