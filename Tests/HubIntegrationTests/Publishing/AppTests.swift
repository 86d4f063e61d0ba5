import HubCore
import Testing

/// Several apps on one hub, each within its own limits.
@Suite struct AppTests {
    private static let configuration = """
        apps:
          - id: "1"
            key: app-key
            secret: app-secret
            ping_interval: 1s
            pong_timeout: 4s
            presence_members_max: 2
            client_events: false
          - { id: "2", key: off-key, secret: off-secret, enabled: false }
          - { id: "3", key: small-key, secret: small-secret, max_connections: 1 }
          - { id: "4", key: origin-key, secret: origin-secret, allowed_origins: ["https://good.example"], activity_timeout: 30s }
        """

    private func run(_ scenario: String, loops: Int) async throws -> JSONValue {
        try await Stage.run { stage in
            let file = try stage.write(Self.configuration, to: "tandem.yaml")
            let hub = try await stage.hub(loops: loops, arguments: ["--config", file])
            return try await stage.python("publishing/apps.py", scenario, hub: hub)
        }
    }

    @Test(arguments: [1, 2]) func limitsOfAnApp(loops: Int) async throws {
        let result = try await run("limits", loops: loops)
        #expect(result["disabled"] == 4003 && result["full"] == 4004 && result["foreign_origin"] == 4009 && result["own_origin"] == 30)
        #expect(result["presence_limit"] == "LimitReached" && result["presence_error"] == .null)
        #expect(result["client_events_off"] == .null)
        #expect(result["other_app"] == 0)
        #expect(result["foreign_key"] == 401 && result["own_key"] == 200 && result["disabled_api"] == 403)
    }

    @Test func aSilentPeerIsDropped() async throws {
        let result = try await run("keep_alive", loops: 2)
        #expect(result["ping"] == true && result["error"] == true && result["alive"] == true)
        // One second of silence and four for the answer; who answers has four seconds for it, and a busy machine takes longer for all.
        #expect((1...60).contains(result["took"]?.number ?? 0))
    }

    private static let operators = ["TANDEM_OPERATOR_KEY": "operator", "TANDEM_OPERATOR_SECRET": "operator-secret-0123"]

    @Test("tandem apps adds, limits, rotates, disables and removes apps of a running hub, and nobody else does", arguments: [1, 2])
    func operators(loops: Int) async throws {
        try await Stage.run { stage in
            let hub = try await stage.hub(loops: loops, environment: Self.operators)
            let result = try await stage.python(
                "publishing/operators.py", "apps", hub: hub, environment: Self.operators.merging(["TANDEM": Place.tandem.path]) { $1 })
            #expect(result["refused"] == [401, 401, 401, 404], "an app's key, a wrong secret, no signature, no route")
            #expect(result["published"] == 200 && result["seen"] == 1 && result["full"] == 4004 && result["wider"] == true)
            #expect(result["rotated"] == [200, 200], "the former key and the new one")
            #expect(result["tokens"] == [200, 200, 401], "with the former key's token, with a new one, and after its end")
            #expect(result["disabled"] == [4003, 4003, 403] && result["enabled"] == true)
            #expect(result["removed"] == [4001, 4001, 404] && result["taken"] == true)
            #expect(result.at("remains", "sessions") == 1 && result.at("remains", "participants") == 1)
            #expect(result["errors"] == [64, 1, 1, 64, 64])
            #expect(!hub.log.contains(result["secret"]?.stringValue ?? "-"))
        }
    }

    @Test("SIGHUP puts the apps of the configuration file in force, and a broken file changes nothing")
    func reload() async throws {
        try await Stage.run { stage in
            let file = try stage.write(Self.configuration, to: "tandem.yaml")
            let hub = try await stage.hub(arguments: ["--config", file])
            let result = try await stage.python("publishing/operators.py", "reload", hub: hub, environment: ["FILE": file])
            #expect(result["gone"] == 4001 && result["added"] == true && result["kept"] == true && result["broken"] == true)
            #expect(result["enabled"] == true)
        }
    }

    @Test("without an operator key there is no way in")
    func noOperator() async throws {
        try await Stage.run { stage in
            let hub = try await stage.hub()
            let result = try await stage.python("publishing/operators.py", "closed", hub: hub)
            #expect(result["status"] == 403)
        }
    }
}
