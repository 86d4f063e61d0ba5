import HubCore
import Testing

/// The HTTP API of Pusher's protocol, over HTTP, beyond what the official libraries ask for.
@Suite struct PublishingTests {
    private static let configuration = """
        apps:
          - { id: "1", key: app-key, secret: app-secret }
          - { id: "2", key: two-key, secret: two-secret }
        cors: { origins: ["https://tool.example"] }
        """

    private func run(_ scenario: String) async throws -> JSONValue {
        try await Stage.run { stage in
            let file = try stage.write(Self.configuration, to: "tandem.yaml")
            return try await stage.python("publishing/publishing.py", scenario, hub: try await stage.hub(arguments: ["--config", file]))
        }
    }

    @Test func idempotencyKeys() async throws {
        let result = try await run("idempotency")
        let both: JSONValue = [[200, "{}", .null], [200, "{}", "true"]]
        #expect(result["plain"] == [[200, "{}", .null], [200, "{}", "true"], [200, "{}", "true"]])
        #expect(result["policy"] == [["channels", "event_id"], ["presence-quiz-monday": ["user_count": 4]], true, [200, "true"]])
        let batch: JSONValue = "{\"batch\":[{},{}]}"
        #expect(result["batch"] == [[200, batch, .null], [200, batch, "true"]])
        #expect(result["member"] == both)
        #expect(result["different"] == [422, 422, 422], "white space around a header's value is not part of it")
        #expect(result["bad_key"]?[0]?[0] == 400 && result["bad_key"]?[0]?[1]?.stringValue?.contains("255") == true)
        #expect(result["bad_key"]?[1] == 400 && result["bad_key"]?[2] == 200)
        #expect(result["corrected"] == [400, [200, "{}", .null]])
        #expect(result["refused"] == [404, [200, .null]])
        #expect(result["other_app"] == [200, "{}", .null])
        #expect(result["crowd"] == [[200], ["{}"], 1, 1], "one of twelve at once is published, and all get its answer")
        // k1, the batch, k4, the key of 255 characters, k5, the crowd.
        #expect(result["told"] == [["1", "1", "1", "1", "1", "crowd"], true])
        #expect(result["started"] == [1])
    }

    @Test func browserTools() async throws {
        let result = try await run("cors")
        let allowed: JSONValue = "https://tool.example"
        #expect(result["preflight"] == [200, allowed, "Origin"] && result["methods"]?.stringValue?.contains("POST") == true)
        let headers = Set(try required(result["headers"], "headers").arrayValue ?? [])
        #expect(headers.isSuperset(of: ["content-type", "idempotency-key", "x-pusher-library", "x-requested-with"]))
        #expect(
            result["answer"] == [200, allowed, "Origin"] && result["unsigned"] == [401, allowed, "Origin"]
                && result["later"] == [404, allowed, "Origin"])
        #expect(
            result["evil"] == [200, .null, "Origin"] && result["native"] == [200, .null, .null]
                && result["evil_preflight"] == [403, .null, "Origin"])
    }

    @Test func deprecatedRoutes() async throws {
        let result = try await run("deprecated")
        #expect(result["accepted"] == [202, "202 ACCEPTED", "text/plain"])
        #expect(result["data"] == true && result["excluded"] == 0)
        #expect(
            result["stats"] == [
                ["occupied": true, "user_count": 1, "connection_count": 2], ["occupied": true, "connection_count": 2],
                ["occupied": false, "connection_count": 0],
            ])
        #expect(result["refused"] == [400, 405] && result["too_much"] == 413 && result["connections"] == ["connections": 2])
    }

    @Test func refusals() async throws {
        let result = try await run("refusals")
        #expect(
            result["texts"] == [
                "no_key": [401, "Missing parameter: auth_key"], "key": [401, "Unknown auth_key"], "no_version": [401, "Version required"],
                "version": [401, "Version not supported"], "no_timestamp": [401, "Timestamp required"],
            ])
        let moment = /Timestamp expired: Given timestamp \(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\) not within 600s of server time \([^)]*Z\)/
        #expect(result["expired"]?[0] == 401 && result["expired"]?[1]?.stringValue?.wholeMatch(of: moment) != nil)
        let signed = #"you should have sent HmacSHA256Hex("GET\n/apps/1/channels\nauth_key=app-key&auth_timestamp="#
        #expect(result["wrong"]?[0] == 401 && result["wrong"]?[1]?.stringValue?.contains(signed) == true)
        #expect(result["md5"] == 401 && result["app"]?[0] == 404 && result["route"] == 404 && result["apps"] == 404)
        #expect(result["method"] == [405, "GET, HEAD, POST"] && result["head"] == [200, "", true] && result["info"] == 400)
        #expect(result["data"]?[0] == 413 && result["data"]?[1]?.stringValue?.contains("exceeds the allowed maximum (10240 bytes)") == true)
        #expect(result["body"] == 413 && result["query"] == "{}")
    }
}
