import HubCore
import HubJSON
import Testing

/// Strangers and honest people at a real hub with simulated gateways, over HTTP and WebSocket.
@Suite struct ClosedDoorTests {
    private func run(_ scenario: String) async throws -> JSONValue {
        try await Stage.run { stage in
            let gateways = try await stage.gateways()
            let hub = try await stage.hub(gateways: gateways)
            return try await stage.python("doors/doors.py", scenario, hub: hub, gateways: gateways)
        }
    }

    @Test("a stranger moves nobody's notifications, by no id and by no token") func stranger() async throws {
        let result = try await run("stranger")
        #expect(result["statuses"] == [400, 400, 400, 200] && result["eve"] == true)
        #expect(result["told"] == ["victim": 1, "ada": 1, "attacker": 0])
    }

    @Test("one phone in two sessions hears of both, once each") func onePhone() async throws {
        let result = try await run("one_phone")
        #expect(result["counts"] == [1, 2] && result["people"] == [true])
    }

    @Test("honest people get in and are told: reinstalled, refreshed, with a role, logged out, invited") func honest() async throws {
        let result = try await run("honest")
        #expect(result["same"] == true && result["host"] == true && result["role"] == "hider")
        #expect(result["stranger"] == 403 && result["events"] == 200)
        #expect(result["told"] == ["old": 1, "new": 1, "fresh": 1, "host": 1, "nina": 1])
    }
}
