import HubCore
import HubDemo
import Testing

@Suite("PageGuard") struct PageGuardTests {
    private let gate = PageGuard(token: "secret", port: 4000)

    private func path(_ method: String, _ path: String, host: String? = "127.0.0.1:4000", origin: String? = nil) -> String {
        var headers: [String: String] = [:]
        headers["host"] = host
        headers["origin"] = origin
        switch gate.path(of: HTTPRequest(method: method, path: path, headers: headers)) {
        case .success(let path): return "/\(path)"
        case .failure(let refusal): return "\(refusal.response.status)"
        }
    }

    @Test("the page and its requests pass")
    func passes() {
        #expect(path("GET", "/secret/") == "/")
        #expect(path("GET", "/secret/state") == "/state")
        #expect(path("POST", "/secret/wish", origin: "http://127.0.0.1:4000") == "/wish")
    }

    @Test(
        "a name that was pointed to loopback is refused",
        arguments: [
            "evil.example", "evil.example:4000", "127.0.0.1", "127.0.0.1:4001", "localhost:4000",
        ])
    func foreignHost(host: String) {
        #expect(path("GET", "/secret/state", host: host) == "421")
    }

    @Test("a request without a host is refused") func noHost() { #expect(path("GET", "/secret/state", host: nil) == "421") }

    @Test(
        "a page of another origin is refused",
        arguments: [
            "null", "http://evil.example", "https://127.0.0.1:4000", "http://127.0.0.1:4001", "http://localhost:4000",
        ])
    func foreignOrigin(origin: String) {
        #expect(path("POST", "/secret/wish", origin: origin) == "403")
        #expect(path("GET", "/secret/state", origin: origin) == "403")
    }

    @Test("a change without an origin is refused") func noOrigin() { #expect(path("POST", "/secret/wish") == "403") }

    @Test("without the token there is nothing", arguments: ["/", "/state", "/secret", "/secrets/", "/SECRET/", "//secret/", "/x/secret/"])
    func noToken(other: String) {
        #expect(path("GET", other) == "404")
    }
}
