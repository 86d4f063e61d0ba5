import HubCore
import Testing

@testable import HubAPI

@Suite("The console's gateway")
struct ConsoleGatewayTests {
    private static let event = "{\"name\": \"greeting\", \"channel\": \"my-channel\", \"data\": \"1\"}"

    @Test("the cookie reaches the routes of apps, and nothing does without it")
    func routes() async throws {
        let console = try ConsoleStage()
        for path in ["api/apps", "api/apps/1/channels", "api/metrics", "api/ready", "api/cluster"] {
            #expect(try await console.send("GET", path).status == 401, "\(path)")
        }
        try await console.signIn("the-boss-of-all")
        let listing = try await console.send("GET", "api/apps")
        #expect(listing.json["apps"]?.arrayValue?.compactMap { $0["id"]?.stringValue } == ["1", "2", "3"])
        #expect(!listing.text.contains("secret") && !listing.text.contains("alpha"))
        #expect(try await console.send("GET", "api/metrics").text == "figures")
        #expect(try await console.send("GET", "api/ready").json["ready"] == true)
        #expect(try await console.send("GET", "api/cluster").json["complete"] == true)
        let channels = try await console.send("GET", "api/apps/1/channels", query: [("info", "subscription_count")])
        #expect(channels.json["channels"]?["room"]?["subscription_count"] == 2)
        #expect(try await console.send("GET", "api/apps/1/channels/presence-room/users").json["users"]?.arrayValue?.count == 2)
        #expect(try await console.send("GET", "api/apps/1/events/nothing/deliveries").status == 404)
        #expect(try await console.send("GET", "api/apps/9/channels").error.contains("no app"))
        #expect(try await console.send("GET", "api/nothing").status == 404)
        #expect(try await console.send("POST", "api/metrics").status == 405)
        #expect(try await console.send("HEAD", "api/apps/1/channels").status == 200)
    }

    @Test("an operator acts, and a viewer looks")
    func roles() async throws {
        let console = try ConsoleStage()
        try await console.signIn("just-a-guest")
        #expect(try await console.send("GET", "api/apps/1/channels").status == 200)
        for (method, path) in [
            ("POST", "api/apps/1/events"), ("DELETE", "api/apps/1/users/u1/devices/phone"), ("PUT", "api/apps/1/sessions/s"),
            ("POST", "api/apps/1/dead-letters/replay"), ("POST", "api/apps/1/links"),
        ] { #expect(try await console.send(method, path, Self.event).status == 403, "\(method) \(path)") }
        #expect(console.stage.publications == 0)
        try await console.signIn("the-boss-of-all")
        #expect(try await console.send("POST", "api/apps/1/events", Self.event).status == 200)
        #expect(console.stage.publications == 1)
    }

    @Test(
        "another page cannot use the cookie",
        arguments: [
            ["sec-fetch-site": "cross-site"], ["sec-fetch-site": "same-site"], ["sec-fetch-site": "none"],
            ["sec-fetch-site": "", "origin": "https://evil.example"], ["sec-fetch-site": "", "origin": "http://hub.example:8080"],
            ["sec-fetch-site": "", "origin": "null"], ["x-tandem-console": ""], ["x-tandem-console": "2"],
        ])
    func forgery(headers: [String: String]) async throws {
        let console = try ConsoleStage()
        try await console.signIn("the-boss-of-all")
        #expect(try await console.send("POST", "api/apps/1/events", Self.event, headers: headers).status == 403)
        #expect(console.stage.publications == 0)
        if headers["x-tandem-console"] == nil, headers["sec-fetch-site"] != "none" {
            #expect(try await console.send("GET", "api/apps", headers: headers).status == 403, "reading is refused as well")
        }
        #expect(try await console.signIn("the-boss-of-all", from: "192.0.2.9", headers: headers).status == 403, "nor sign in")
    }

    @Test("its own page is let in by its origin where the browser says no more")
    func origin() async throws {
        let console = try ConsoleStage()
        try await console.signIn("the-boss-of-all", headers: ["sec-fetch-site": "", "origin": "http://hub.example"])
        let headers = ["sec-fetch-site": "", "origin": "http://hub.example"]
        #expect(try await console.send("POST", "api/apps/1/events", Self.event, headers: headers).status == 200)
    }

    @Test("no screen gets an e-mail, a join code or a token whole")
    func masked() async throws {
        let console = try ConsoleStage()
        try await console.stage.people.makeSession()
        _ = try await console.stage.people.join(email: "ann.other@example.com")
        try await console.signIn("the-boss-of-all")
        let people = try await console.send("GET", "api/apps/1/sessions/s1/participants")
        #expect(people.json["participants"]?.arrayValue?.first?["email"] == "a…@example.com")
        #expect(!people.text.contains("ann.other"))
        #expect(try await console.send("GET", "api/apps/1/sessions/s1").json["join_code"] == "AB…")
        let user = try #require(people.json["participants"]?.arrayValue?.first?["user"]?.stringValue)
        let token = try await console.send("POST", "api/apps/1/sessions/s1/participants/\(user)/token", "{}")
        #expect(token.status == 403 && token.json["token"] == nil)
        #expect(ConsoleMask.address("x") == "…" && ConsoleMask.address("@b") == "…@b" && ConsoleMask.address("a…@b") == "a…@b")
    }

    @Test("a body is bounded before anybody has signed in")
    func bodies() throws {
        let console = try ConsoleStage()
        for path in ["/console/api/session", "/console/api/apps/1/events"] {
            guard case .bytes(Router.unsignedBodyBytesMax) = console.stage.bodyLimit(path, query: []) else {
                Issue.record("\(path) has another limit")
                continue
            }
        }
    }
}
