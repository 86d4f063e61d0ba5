import HubCore
import Testing

/// The hub does what the documents say.
@Suite struct DocumentTests {
    /// Trying codes, and joining all the time, is no attack here.
    private static let configuration = """
        limits: { wrong_join_codes_per_minute: 1000000, joins_per_minute: 0 }
        operator: { key: operator, secret: operator-secret-0123 }

        """

    private func openAPI(_ scenario: String) async throws -> JSONValue {
        try await Stage.run(seconds: 100) { stage in
            let file = try stage.write(Self.configuration, to: "tandem.yaml")
            return try await stage.python("life/openapi.py", scenario, hub: try await stage.hub(arguments: ["--config", file]))
        }
    }

    @Test("every route is in openapi.yaml with its methods, and nothing else is")
    func routes() async throws {
        let result = try await openAPI("routes")
        #expect((result["operations"]?.intValue ?? 0) > 100 && (result["candidates"]?.intValue ?? 0) > 1000)
    }

    @Test("schemathesis finds no answer that openapi.yaml does not have, and nothing taken that it forbids")
    func openAPIHolds() async throws {
        let result = try await openAPI("judged")
        #expect((result["cases"]?.intValue ?? 0) > 1000 && (result["operations"]?.intValue ?? 0) >= 30)
    }

    @Test("the curl commands of http-api.md work as printed and answer as printed", arguments: ["bash", "sh"])
    func httpAPI(shell: String) async throws {
        let result = try await Stage.run { stage in
            let operators = ["TANDEM_OPERATOR_KEY": "operator", "TANDEM_OPERATOR_SECRET": "operator-secret-0123"]
            let hub = try await stage.hub(environment: operators)
            let own = ["DOCUMENT_SHELL": shell, "TANDEM": Place.tandem.path, "TANDEM_URL": hub.url]
            return try await stage.python("life/documents.py", "http_api", hub: hub, environment: operators.merging(own) { $1 })
        }
        let (blocks, answers) = (result["blocks"]?.intValue ?? 0, result["answers"]?.intValue ?? 0)
        #expect(blocks > 20 && answers == blocks - 1, "all but the one that defines the signing have an answer")
    }

    @Test("what the README has a newcomer type works")
    func readme() async throws {
        try await Stage.run { stage in
            let hub = try await stage.hub()
            let result = try await stage.python(
                "life/documents.py", "readme", hub: hub, environment: ["TANDEM": Place.tandem.path, "TANDEM_URL": hub.url])
            #expect(result.at("session", "channel") == "presence-quiz-monday" && result.at("joined", "channel") == "presence-quiz-monday")
            #expect(result.at("published", "event_id")?.stringValue?.isEmpty == false)
        }
    }

    @Test("the story of why-not-told.md happens as told, and its trail is the printed one")
    func whyNotTold() async throws {
        let result = try await Stage.run { stage in
            let gateways = try await stage.gateways()
            let hub = try await stage.hub(gateways: gateways)
            let own = ["TANDEM": Place.tandem.path, "TANDEM_URL": hub.url]
            return try await stage.python("life/documents.py", "why", hub: hub, gateways: gateways, environment: own)
        }
        #expect(result == ["known": "live", "state": "failed", "answers": 2])
    }
}
