internal import HubCore
internal import HubJSON

/// `GET /client/tandem.js`: the companion of pusher-js, for pages of every origin. Any thread.
enum CompanionResource {
    static let path = "/client/tandem.js"

    /// How long a browser may keep the file, in seconds.
    private static let ageMax = 3600

    static func respond(to request: HTTPRequest) -> HTTPResponse {
        guard request.method == "GET" || request.method == "HEAD" else { return .methodNotAllowed(request, "GET, HEAD") }
        return HTTPResponse(
            status: 200, contentType: "text/javascript; charset=utf-8", body: PackageResources.tandem_js,
            headers: [
                ("Access-Control-Allow-Origin", "*"), ("Cache-Control", "public, max-age=\(ageMax)"),
                ("Cross-Origin-Resource-Policy", "cross-origin"), ("X-Content-Type-Options", "nosniff"),
            ])
    }
}
