import HubCore
import Testing

/// Tandem's own routes, over HTTP, as a backend and as an app use them.
@Suite struct HTTPAPITests {
    private func run(_ scenario: String) async throws -> JSONValue {
        try await Stage.run { stage in
            try await stage.python("publishing/api.py", scenario, hub: try await stage.hub())
        }
    }

    @Test func sessions() async throws {
        let result = try await run("sessions")
        let created = try required(result["created"], "created")
        #expect(created["channel"] == "presence-quiz-monday" && created["join_code"] == "ABC123" && created["definition"] == "quiz")
        #expect(created["attributes"] == ["course": "Swift"] && created["session_id"]?.intValue != nil)
        #expect(result["read"] == created && result["repeated"] == created)
        #expect(result["clash"] == 409)
        #expect(result["definition"]?[0] == 400 && result["definition"]?[1]?["error"]?.stringValue?.contains("quiz") == true)
        for name in ["no_definition", "bad_name", "bad_code", "bad_json"] { #expect(result[name] == 400, "\(name)") }
        #expect(result["unsigned"] == 401 && result["method"] == 405 && result["missing"] == 404)
        #expect(result["deleted"] == [200, 200] && result["gone"] == 404 && result["code_is_free"] == 200)
    }

    @Test func participants() async throws {
        let result = try await run("participants")
        #expect(result.at("put", "user") == "u1" && result.at("put", "name") == "Uma" && result.at("put", "role") == .null)
        #expect(result["same"] == [true, true, true])
        #expect(
            result["listed"] == [
                ["name": "Uma", "present": false, "connections": 0, "app_state": .null],
                ["name": "Ada", "present": true, "connections": 1, "app_state": "unknown"],
                ["name": "Ada", "present": false, "connections": 0, "app_state": .null],
            ])
        #expect(result["no_session"] == 404 && result["no_name"] == 400 && result["no_role"] == 400 && result["email_taken"] == 409)
        #expect(result["both_tokens"] == [200, 200])
        #expect(result["removed"] == 200 && result["token_of_removed"] == 401)
        #expect(result["left"] == ["other@example.com", "uma@example.com"])
    }

    @Test func joining() async throws {
        let result = try await run("joining")
        let members = Set(result["members"]?.arrayValue ?? [])
        #expect(members.isSuperset(of: ["id", "session_id", "name", "email", "joined_at", "token"]))
        #expect(result["same_members"] == true && result["types"] == ["int", "int", "str"])
        #expect(result["joined_at"]?.stringValue?.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/) != nil)
        for name in ["no_name", "no_email", "bad_email", "no_object"] { #expect(result[name] == 400, "\(name)") }
        #expect(result["bad_platform"] == 200 && result["bad_token"] == 200 && result["method"] == 405)
        // After ten wrong codes joins take turns, right ones too; nobody is refused.
        #expect(result["right"] == [200])
        #expect(result["wrong"] == .array(Array(repeating: 404, count: 11)))
        #expect(result["right_in_turn"] == 200)
    }

    @Test func devices() async throws {
        let result = try await run("devices")
        #expect(result["put"]?[0] == 200 && result["get"] == result["put"])
        #expect(result["put"]?[1]?["provider"] == "fcm" && result["put"]?[1]?["has_token"] == true && result["put"]?[1]?["token"] == nil)
        #expect(result["patch"]?[1]?["notifications"] == false && result["patch"]?[1]?["locale"] == "de-CH")
        #expect(result["patch"]?[1]?["has_token"] == true)
        #expect(result["list"]?[1]?["devices"]?.count == 1)
        for name in ["no_token", "no_platform", "bad_platform", "apns_android", "apns_no_hex"] { #expect(result[name] == 400, "\(name)") }
        #expect(result.at("ios", "provider") == "apns" && result.at("ios_fcm", "provider") == "fcm")
        #expect(result["patch_missing"] == 404 && result["deleted"] == [200, 200] && result["gone"] == 404)
        #expect(result["own"] == [200, ["dev_"], 400, 200, [], 405])
    }

    @Test func participantTokens() async throws {
        let result = try await run("tokens")
        let forged = try required(result["forged"], "forged").objectValue ?? [:]
        #expect(forged.count == 11)
        for (name, statuses) in forged { #expect(statuses == [401, 401, 401, 401], "\(name)") }
        // The forgeries differ from this one only in what they forge.
        #expect(result["genuine"] == 200)
        #expect(result["own"] == [true, ["user_id": "1", "user_info": ["name": "Ada"]]])
        #expect(result["form"] == true && result["email_hidden"] == true)
        let foreign = try required(result["foreign"], "foreign").objectValue ?? [:]
        #expect(foreign.count == 7 && foreign.values.allSatisfy { $0 == 403 })
        #expect(result["ben"] == [403, 200] && result["bad"] == [400, 400, 400])
        #expect(result["user"] == true && result["user_signature"] == true && result["bad_state"] == [400, 400, 400])
    }
}
