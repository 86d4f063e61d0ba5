import HubCore
import HubJSON
import Testing

/// Direct sends of a backend, and pushes that fail.
@Suite struct NotificationTests {
    private func run(_ scenario: String) async throws -> JSONValue {
        try await Stage.run { stage in
            let gateways = try await stage.gateways()
            let hub = try await stage.hub(gateways: gateways)
            return try await stage.python(
                "pushes/notifications.py", scenario, hub: hub, gateways: gateways, environment: ["TANDEM": Place.tandem.path])
        }
    }

    @Test("users, tokens, a topic and a condition get a direct send in their gateway's form")
    func sends() async throws {
        let result = try await run("sends")
        let text: JSONValue = ["title": "Welcome to LoopRail! 🚀", "body": "Your onboarding is complete. Start exploring now."]
        #expect(result["statuses"] == [200, 200, 400])
        #expect(result["users"] == ["devices": 2, "unreachable": ["bob"]])
        #expect(result.at("again", "devices") == 0 && result.at("again", "skipped") == 1 && result.at("again", "unreachable") == ["bob"])
        #expect(result.at("android", "notification") == text && result.at("android", "data") == "" && result["ios"] == text)
        #expect(result["devices"] == [3, 1, 1])
        #expect(result["lone"] == text["title"] && result["direct"] == text["title"])
        #expect(result["fid"] == .array([text["title"] ?? .null]))
        #expect(result["trace"] == true && result["silent_about_tokens"] == true)
    }

    @Test("invented device tokens hold up nobody whose token worked before, and go")
    func inventedTokens() async throws {
        let result = try await run("invented_tokens")
        // Each of five pushes once, whatever was invented between them.
        #expect(result["counts"] == [5] && result["alarm"] == false)
        print("seconds until all 150 had it: \(result["seconds"]?.text ?? "")")
    }

    @Test("a push that its gateway refused is listed, shown, and accepted when it is sent again")
    func deadLetters() async throws {
        let result = try await run("dead_letters")
        #expect(
            result.at("letter", "user") == "ann" && result.at("letter", "device") == "phone" && result.at("letter", "provider") == "fcm")
        #expect(result.at("letter", "attempts") == 1 && result["event"] == true)
        #expect(result.at("letter", "reason")?.stringValue?.contains("INVALID_ARGUMENT") == true)
        #expect(result["shown"] == ["Welcome to LoopRail! 🚀", ["n": "7"]] && result["listed"] == true)
        #expect(result["replayed"] == "replayed 1" && result["statuses"] == [400, 200] && result["same"] == true)
        #expect(result["left"] == [] && result["empty"] == "no dead letters")
        #expect(result["missing"]?.stringValue?.contains("could not be sent again") == true)
        #expect(result["devices"] == [true, true, "no devices"])
    }
}
