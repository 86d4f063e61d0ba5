import HubCore
import Testing

/// What the documents say is what the hub does.
@Suite struct DocumentTests {
    /// Trying codes is no attack here.
    private static let configuration = "limits: { wrong_join_codes_per_minute: 1000000 }\n"

    private func openAPI(_ scenario: String) async throws -> JSONValue {
        try await Stage.run { stage in
            let file = try stage.write(Self.configuration, to: "tandem.yaml")
            return try await stage.python("openapi.py", scenario, hub: try await stage.hub(arguments: ["--config", file]))
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
}
