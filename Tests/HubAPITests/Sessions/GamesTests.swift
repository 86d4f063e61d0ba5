import HubCore
import HubDelivery
import Testing

@testable import HubAPI

/// Requests of the hide-and-seek app: joining by a code in the body, and a host's token before there is a game.
@Suite("Games")
struct GamesTests {
    static let gameFile = """
        channel: presence-game-{session}
        roles: [hider, seeker]
        join: { identity: device, device_token: required }
        events: { ping: { to: all, policy: realtime_only } }
        """

    private func hub() async throws -> Hub {
        let hub = try Hub(files: [("channels/game.yaml", Self.gameFile), ("channels/quiz.yaml", Hub.quizFile)])
        try await hub.makeSession("g1", definition: "game", code: "HIDE42")
        return hub
    }

    private func join(_ hub: Hub, _ members: [String: JSONValue] = [:], client: String? = adasPhone) async throws -> Answer {
        let body: [String: JSONValue] = ["join_code": "hide42", "name": "Ann"]
        return try await hub.send(
            "POST", "/games/join", .object(body.merging(members) { _, new in new }), headers: client.map { ["x-client-id": $0] } ?? [:])
    }

    @Test("a game is joined by the code in the body, without an e-mail, and the token is the installation's")
    func joins() async throws {
        let hub = try await hub()
        let answer = try await join(hub, ["device_token": .string(hexToken), "device_token_environment": "sandbox"])
        #expect(answer.status == 200, "\(answer.error)")
        #expect(answer["email"] == .null && answer["channel"] == "presence-game-g1")
        let user = try #require(answer["user_id"]?.stringValue)
        let device = try #require(try await hub.directory.device(app: "1", user: user, id: adasHandle))
        #expect(device.token == hexToken.lowercased() && device.environment == .sandbox && device.provider == .apns)
        // The same installation is the same player, and needs no token a second time.
        #expect(try await join(hub, ["name": "Anna"])["id"] == answer["id"])
        #expect(try await join(hub, ["device_token": .string(fcmToken)], client: bensPhone)["id"] != answer["id"])
    }

    @Test("nobody joins without a token where the definition requires one, and a wrong code is still a 404")
    func refusals() async throws {
        let hub = try await hub()
        let missing = try await join(hub)
        #expect(missing.status == 400 && missing.error.contains("device_token is missing"))
        #expect(try await join(hub, ["device_token": "with space"]).status == 400)
        #expect(try await join(hub, ["join_code": "other"]).status == 404)
        #expect(try await join(hub, ["join_code": .null]).status == 400)
        #expect(try await join(hub, ["device_token": .string(hexToken)], client: nil).error.contains("X-Client-Id"))
        #expect(try await hub.directory.participants(app: "1", session: "g1").isEmpty)
    }

    @Test("a host's token waits for the game, and goes along when the host joins")
    func waiting() async throws {
        let hub = try await hub()
        let body: JSONValue = [
            "map_id": "old-town", "device_token": .string(hexToken.uppercased()), "device_token_environment": "production",
            "app_key": "alpha-key",
        ]
        let answer = try await hub.send("POST", "/games", body, headers: ["x-client-id": bensPhone])
        #expect(answer.status == 200, "\(answer.error)")
        #expect(answer.json == ["client_id": .string(bensPhone), "platform": "ios", "provider": "apns", "environment": "production"])
        let installation = try #require(InstallationID(bensPhone))
        #expect(try await hub.directory.devices(app: "1", user: installation.owner).map(\.token) == [hexToken.lowercased()])
        let user = try #require(try await join(hub, client: bensPhone)["user_id"]?.stringValue)
        #expect(try await hub.directory.device(app: "1", user: user, id: installation.handle)?.token == hexToken.lowercased())
        #expect(try await hub.directory.devices(app: "1", user: installation.owner) == [])
        // A refreshed token waits for the next join.
        let fresh = String(repeating: "cd", count: 32)
        hub.clock.advance(seconds: 1)
        _ = try await hub.send(
            "POST", "/games", ["device_token": .string(fresh), "app_key": "alpha-key"], headers: ["x-client-id": bensPhone])
        #expect(try await hub.directory.device(app: "1", user: user, id: installation.handle)?.token == hexToken.lowercased())
        #expect(try await join(hub, client: bensPhone)["user_id"] == .string(user))
        #expect(try await hub.directory.device(app: "1", user: user, id: installation.handle)?.token == fresh)
    }

    @Test("a registration before any game says what is missing, and an address makes only so many")
    func waitingRefusals() async throws {
        let hub = try await hub()
        func register(_ body: JSONValue, client: String? = adasPhone) async throws -> Answer {
            try await hub.send("POST", "/games", body, headers: client.map { ["x-client-id": $0] } ?? [:])
        }
        let token = JSONValue.string(hexToken)
        #expect(try await register(["device_token": token]).error.contains("app_key is missing"))
        #expect(try await register(["device_token": token, "app_key": "nobody's"]).error.contains("app_key is unknown"))
        #expect(try await register(["device_token": token, "app_key": "gamma-key"]).status == 403)
        #expect(try await register(["app_key": "alpha-key"]).error.contains("device_token is missing"))
        #expect(try await register(["device_token": token, "app_key": "alpha-key"], client: nil).error.contains("X-Client-Id"))
        #expect(try await hub.send("GET", "/games", nil).status == 405)
        // A class of 300 within a minute, twice as many at once; five were refused for other reasons.
        for number in 0..<600 - 5 {
            #expect(try await register(["device_token": token, "app_key": "alpha-key"]).status == 200, "\(number)")
        }
        let refused = try await register(["device_token": token, "app_key": "alpha-key"])
        #expect(refused.status == 429 && refused.headers["Retry-After"] != nil)
        hub.clock.advance(seconds: 1)
        #expect(try await register(["device_token": token, "app_key": "alpha-key"]).status == 200)
    }
}
