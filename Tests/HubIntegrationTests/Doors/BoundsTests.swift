import HubCore
import HubJSON
import Testing

/// Bounds on the messages of one connection, with real sockets.
@Suite struct BoundsTests {
    private func run(_ scenario: String) async throws -> JSONValue {
        try await Stage.run { stage in
            let hub = try await stage.hub(loops: 1)
            return try await stage.python("doors/bounds.py", scenario, hub: hub)
        }
    }

    @Test("a flood of whatever frames ends its own connection with 4100, and nobody else's") func flood() async throws {
        let result = try await run("flood")
        let kinds = ["pings", "no JSON", "binary", "pongs", "fragments"]
        #expect(result["closes"] == .array(kinds.map { [.string($0), 4100] }) && result["other"] == .null)
    }

    @Test("500 channels at once, and all the client events that the app allows, are no flood") func honest() async throws {
        let result = try await run("honest")
        #expect(result["close"] == .null && result["errors"] == 0)
    }
}
