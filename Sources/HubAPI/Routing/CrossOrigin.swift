internal import HubCore

/// Lets browser apps and browser tools of the configured origins use the API (the Fetch standard's CORS protocol). The signed
/// routes are no exception: who may use those is decided by the signature, and a tool that asks for the secret can make one.
struct CrossOrigin: Sendable {
    /// Empty: nobody. `*`: everybody.
    private let origins: Set<String>
    private let allowsEverybody: Bool

    /// How long a browser may remember a preflight's answer, in seconds.
    private static let maxAgeSeconds = 600
    private static let methods = "GET, HEAD, POST, PUT, PATCH, DELETE"
    /// What a page's request may have beside the headers that are always allowed.
    private static let requestHeaders =
        "Authorization, Content-Type, Idempotency-Key, X-Client-Id, X-Idempotency-Key, X-Pusher-Library, X-Requested-With"
    /// What a page may read of an answer's headers.
    private static let answerHeaders = "Allow, Idempotency-Replayed, Retry-After, WWW-Authenticate"

    init(origins: [String]) {
        self.origins = Set(origins)
        allowsEverybody = origins.contains("*")
    }

    /// The answer to a preflight, which no signature and no token comes with.
    func preflight(from origin: String) -> HTTPResponse {
        guard isAllowed(origin) else {
            return allow(.error(403, "this origin may not use the API: add it to cors.origins in the configuration"), for: origin)
        }
        let headers = [
            ("Access-Control-Allow-Methods", Self.methods), ("Access-Control-Allow-Headers", Self.requestHeaders),
            ("Access-Control-Max-Age", String(Self.maxAgeSeconds)),
        ]
        return allow(HTTPResponse(status: 200, body: Array("{}".utf8), headers: headers.map { (name: $0.0, value: $0.1) }), for: origin)
    }

    /// The answer with what a browser wants to see before it shows it to a page of that origin. Caches are told that other
    /// origins get other answers, also when this one gets nothing.
    func allow(_ response: HTTPResponse, for origin: String) -> HTTPResponse {
        guard !origins.isEmpty else { return response }
        var response = response
        response.headers.append(("Vary", "Origin"))
        guard isAllowed(origin) else { return response }
        response.headers += [
            ("Access-Control-Allow-Origin", allowsEverybody ? "*" : origin), ("Access-Control-Expose-Headers", Self.answerHeaders),
        ]
        return response
    }

    private func isAllowed(_ origin: String) -> Bool {
        allowsEverybody || origins.contains(origin)
    }
}
