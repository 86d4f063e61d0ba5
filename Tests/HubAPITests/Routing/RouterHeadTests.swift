import HubCore
import PusherProtocol
import Testing

@testable import HubAPI

@Suite("A request's head, before its body")
struct RouterHeadTests {
    private let stage: RouterStage

    init() throws {
        stage = try RouterStage(origins: ["https://app.example"])
    }

    /// As an SDK signs it, with some parameters replaced; nil takes one away.
    private func limit(
        _ path: String, _ changes: [String: String?] = [:], headers: [String: String] = [:]
    ) -> (bytes: Int?, refusal: HTTPResponse?) {
        var query = RequestAuth.signedQuery(
            method: "POST", path: path, body: Array("{}".utf8), key: "alpha-key", secret: "alpha-secret",
            nowSeconds: stage.clock.wallSeconds)
        for (name, value) in changes {
            query.removeAll { $0.name == name }
            if let value { query.append((name, value)) }
        }
        return switch stage.bodyLimit(path, query: query, headers: headers) {
        case .bytes(let count): (count, nil)
        case .refused(let response): (nil, response)
        }
    }

    @Test(
        "what nobody signs has 64 KiB for its body",
        arguments: [
            "/games", "/games/join", "/api/scenarios/sessions/ABC123/join", "/me/state", "/me/device", "/pusher/auth", "/pusher/user-auth",
            "/app/key",
            "/health", "/", "/apps", "/nothing/at/all",
        ])
    func unsigned(path: String) {
        #expect(limit(path).bytes == 1 << 16)
    }

    @Test(
        "what says that it is signed has as much as the hub takes",
        arguments: ["/apps/1/events", "/prefix/apps/1/batch_events", "/apps/1/sessions/x", "/users/u/terminate_connections"])
    func signed(path: String) {
        #expect(limit(path).bytes == .max)
    }

    @Test(
        "what cannot be a signed request is refused from its head, as it would be with its body",
        arguments: [
            ("auth_key", "nobody", "Unknown auth_key"), ("auth_key", nil, "Missing parameter: auth_key"),
            ("auth_key", "other-key", "Unknown auth_key"),
            ("auth_version", "2.0", "Version not supported"), ("auth_timestamp", nil, "Timestamp required"),
            ("auth_timestamp", "x", "Timestamp invalid"),
            ("auth_signature", nil, "Invalid signature"), ("auth_signature", String(repeating: "a", count: 63), "Invalid signature"),
            ("auth_signature", String(repeating: "a", count: 65), "Invalid signature"),
            ("auth_signature", String(repeating: "g", count: 64), "Invalid signature"),
            ("body_md5", String(repeating: "a", count: 31), "Invalid body_md5"),
            ("body_md5", String(repeating: "-", count: 32), "Invalid body_md5"),
        ] as [(String, String?, String)])
    func refused(name: String, value: String?, word: String) {
        let refusal = limit("/apps/1/events", [name: value]).refusal
        #expect(refusal?.status == 401 && refusal?.error.contains(word) == true, "\(refusal?.text ?? "taken")")
    }

    @Test("a signature's shape is enough before the body, also where body_md5 is left out")
    func shape() {
        for letter in ["0", "a", "F"] {
            #expect(limit("/apps/1/events", ["auth_signature": String(repeating: letter, count: 64)]).bytes == .max)
        }
        #expect(limit("/apps/1/events", ["body_md5": nil]).bytes == .max)
        let now = stage.clock.wallSeconds
        for seconds in [now - 599, now + 599] { #expect(limit("/apps/1/events", ["auth_timestamp": String(seconds)]).bytes == .max) }
        for seconds in [now - 600, now + 600] {
            #expect(limit("/apps/1/events", ["auth_timestamp": String(seconds)]).refusal?.status == 401)
        }
    }

    @Test("an app that does not exist is a 404, and pages of allowed origins may read refusals")
    func others() {
        #expect(limit("/apps/99/events").refusal?.status == 404)
        #expect(limit("/users/u/terminate_connections", ["auth_key": "nobody"]).refusal?.status == 401)
        let refusal = limit("/apps/99/events", headers: ["origin": "https://app.example"]).refusal
        #expect(refusal?[header: "Access-Control-Allow-Origin"] == "https://app.example")
    }
}
