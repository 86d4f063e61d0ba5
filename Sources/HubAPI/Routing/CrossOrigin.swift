internal import HubCore

/// Opens the API to browser apps and tools of the configured origins (the Fetch standard's CORS protocol). This includes the signed
/// routes: their signature decides about access, and a browser tool that asks for the secret can sign.
struct CrossOrigin: Sendable {
    /// Empty: no origin. `*`: every origin.
    private let origins: Set<String>
    private let allowsEverybody: Bool

    /// Lifetime of a preflight's answer in the browser, in seconds.
    private static let maxAgeSeconds = 600
    private static let methods = "GET, HEAD, POST, PUT, PATCH, DELETE"
    /// Request headers open to pages, in addition to those that are always allowed.
    private static let requestHeaders =
        "Authorization, Content-Type, Idempotency-Key, X-Client-Id, X-Idempotency-Key, X-Pusher-Library, X-Requested-With"
    /// Response headers readable by pages.
    private static let answerHeaders = "Allow, Idempotency-Replayed, Retry-After, WWW-Authenticate"

    init(origins: [String]) {
        self.origins = Set(origins)
        allowsEverybody = origins.contains("*")
    }

    /// Answer to a preflight, which has neither signature nor token.
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

    /// Adds the CORS headers for this origin. `Vary` is added even to an answer without them, because answers differ by origin.
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
