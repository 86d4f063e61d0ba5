internal import HubCore

/// Lets browser apps of the configured origins use the participants' routes (the Fetch standard's CORS protocol). The signed
/// API has none of it: a secret has no place in a browser.
struct CrossOrigin: Sendable {
    /// Empty: nobody.
    let origins: [String]

    /// How long a browser may remember a preflight's answer, in seconds.
    private static let maxAgeSeconds = 600

    /// The answer to a preflight; nil when the request is none.
    func preflight(_ request: HTTPRequest) -> HTTPResponse? {
        guard request.method == "OPTIONS" else { return nil }
        guard isAllowed(request) else {
            return .error(403, "this origin may not use the API: add it to cors.origins in the configuration")
        }
        let headers = [
            ("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE"),
            ("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Client-Id"),
            ("Access-Control-Max-Age", String(Self.maxAgeSeconds)),
        ]
        return allow(HTTPResponse(status: 200, body: [], headers: headers.map { (name: $0.0, value: $0.1) }), for: request)
    }

    /// The answer with what the browser wants to see before it shows it to the app.
    func allow(_ response: HTTPResponse, for request: HTTPRequest) -> HTTPResponse {
        guard isAllowed(request), let origin = request.headers["origin"] else { return response }
        var response = response
        response.headers += [("Access-Control-Allow-Origin", origin), ("Vary", "Origin")]
        return response
    }

    private func isAllowed(_ request: HTTPRequest) -> Bool {
        request.headers["origin"].map(origins.contains) ?? false
    }
}
