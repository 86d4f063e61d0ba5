import HubCore
import HubTesting
import Testing

/// Pusher's protocol with stock clients and the official backend library, on one loop and across two.
@Suite struct ProtocolTests {
    private func run(_ scenario: String, loops: Int) async throws -> JSONValue {
        try await Stage.run { stage in
            let hub = try await stage.hub(loops: loops)
            let result = try await stage.python("protocol.py", scenario, hub: hub)
            #expect(hub.process.isRunning)
            return result
        }
    }

    @Test(arguments: [1, 2]) func pysherOnEveryKindOfChannel(loops: Int) async throws {
        let result = try await run("pysher_client", loops: loops)
        #expect(result["socket_id"]?.stringValue?.wholeMatch(of: /\d+\.\d+/) != nil)
        #expect(result.at("joined", "news") == ["{}"] && result.at("joined", "private-room") == ["{}"])
        #expect(result.at("joined", "presence-hall")?.count == 1)
        let text: JSONValue = ["text": "hällo 🎯"]
        #expect(result.at("events", "news") == [text], "unsubscribed before the second one")
        #expect(result.at("events", "private-room") == [text, ["text": "again"]])
        #expect(result.at("events", "presence-hall") == [text, ["text": "again"]])
        #expect(result["typing"] == #"{"x":1}"#)
        #expect(result["needs_reconnect"] == false)
    }

    @Test(arguments: [1, 2]) func everyCallOfTheBackendLibrary(loops: Int) async throws {
        let result = try await run("backend_library", loops: loops)
        #expect(result["trigger"] == [:] && result["batch"] == [:])
        #expect(result["data"] == ["just text", #"{"n": 1}"#, "2"])
        #expect(result["channels"] == ["channels": ["news": [:], "presence-hall": [:]]])
        #expect(result["presence_channels"] == ["channels": ["presence-hall": ["user_count": 2]]])
        #expect(result["channel"] == ["occupied": true, "user_count": 2])
        #expect(result["unoccupied"] == ["occupied": false])
        #expect(result["users"] == ["users": [["id": "u0"], ["id": "u1"]]] && result["no_users"] == ["users": []])
        #expect(result["info_refused"]?[0] == "PusherBadRequest" && result["users_refused"]?[0] == "PusherBadRequest")
        #expect(result["private-a"] == [:])
        #expect(result["presence-a"] == ["presence": ["count": 1, "ids": ["12"], "hash": ["12": ["name": "Zwölf"]]]])
        let refusals = try required(result["wrong_secret"], "wrong_secret").arrayValue ?? []
        #expect(refusals.count == 4)
        for refusal in refusals {
            #expect(refusal[0] == "PusherBadAuth" && refusal[1]?.stringValue?.contains("Invalid signature") == true)
        }
        #expect(result["unknown_key"]?[0] == "PusherBadAuth")
        #expect(result["unknown_app"]?[0] == "PusherBadStatus" && result["unknown_app"]?[1]?.stringValue?.hasPrefix("404") == true)
        #expect(result["foreign_events"] == 0)
    }

    @Test(arguments: [1, 2]) func aPersonIsAMemberOnce(loops: Int) async throws {
        let result = try await run("presence", loops: loops)
        #expect(
            result["added"] == [["user_id": "p", "user_info": ["name": "p"]], ["user_id": "42", "user_info": ["name": "42"]]])
        #expect(result["removed_first"] == [["user_id": "42"]], "p still has a socket")
        #expect(result["removed"] == [["user_id": "42"], ["user_id": "p"]])
        // Their own arrival is not told to them, that of 42 is.
        #expect(result["own_added"] == [1, 1, 1])
        let counts = (result["acknowledgements"]?.arrayValue ?? []).map { $0["count"] }
        #expect(counts == [2, 2, 2, 3])
        #expect(Set(result["acknowledgements"]?[3]?["ids"]?.arrayValue ?? []) == ["watcher", "p", "42"])
        #expect(result["left"] == [["id": "watcher"]])
    }

    @Test(arguments: [1, 2]) func clientEvents(loops: Int) async throws {
        let result = try await run("client_events", loops: loops)
        #expect(
            result["presence"] == ["event": "client-move", "channel": "presence-room", "data": #"{"x":1}"#, "user_id": "s"])
        #expect(result["private"] == ["event": "client-move", "channel": "private-room", "data": "text"])
        #expect(result["echoes"] == 0 && result["on_news"] == 0 && result["open"] == true)
        let codes = (result["refusals"]?.arrayValue ?? []).map { $0["code"] }
        #expect(codes == [.null, .null, .null, .null])
        // Ten in each of the clock's seconds that the burst touches.
        let passedMax = 10 * (Int64(try required(result["seconds"], "seconds").number ?? 0) + 2)
        let burst = try required(result["burst"], "burst")
        let (passed, refused) = (burst[0]?.intValue ?? 0, burst[1]?.intValue ?? 0)
        #expect(passed + refused == 60 && (10...passedMax).contains(passed))
        #expect(burst[2] == [4301])
    }

    @Test(arguments: [1, 2]) func oneSocketIsLeftOut(loops: Int) async throws {
        let result = try await run("exclusion", loops: loops)
        // Once for each channel.
        #expect(result["single"] == [0, 2])
        #expect(result["batch"] == [["2", "3"], ["1", "3"]])
        #expect(result["bad"]?[0] == 400)
    }

    @Test(arguments: [1, 2]) func fiveHundredInOrder(loops: Int) async throws {
        let result = try await run("ordering", loops: loops)
        #expect(result["counts"] == [500, 500, 500, 500])
        #expect(result["ordered"] == [true, true, true, true])
    }

    /// What one loop has answered goes out on every loop before what another loop takes later.
    @Test(arguments: [1, 4]) func inOrderOverConnectionsOfDifferentLoops(loops: Int) async throws {
        let result = try await run("ordering_across", loops: loops)
        #expect(result["ordered"]?.count == 8 && result["ordered"]?.arrayValue?.allSatisfy { $0 == true } == true)
    }

    @Test func limitsOfPublishing() async throws {
        let result = try await run("limits", loops: 2)
        for accepted in ["10240", "10240_umlauts", "100_channels", "name_200", "object_data", "batch_10"] {
            #expect(result[accepted] == 200, "\(accepted)")
        }
        #expect(result["10241"]?[0] == 413)
        for refused in ["101_channels", "name_201", "reserved_name", "channel_name", "no_channel", "no_data", "batch_11", "batch_one_bad"] {
            #expect(result[refused]?[0] == 400, "\(refused)")
        }
        #expect(result["received"] == ["sized": 3, "b": 10, "never": 0, "object": 1])
        #expect(result["sizes"] == [10240, 10240] && result["object"] == #"{"a":[1]}"#)
        #expect(result["serves"] == true)
    }

    @Test func badRequestsAreRefused() async throws {
        let result = try await run("http_errors", loops: 2)
        let refusals: [String: (status: JSONValue, words: String)] = [
            "signature": (401, "Invalid signature"), "stale": (401, "within 600s"), "future": (401, "within 600s"),
            "body_md5": (401, "body_md5"), "no_body_md5": (401, "body_md5"), "no_key": (401, "auth_key"), "unknown_key": (401, "auth_key"),
            "version": (401, "Version"), "unsigned": (401, "auth_key"), "unknown_app": (404, "99"), "method": (405, "POST"),
            "put": (405, "POST"), "route": (404, "/nothing/here"), "json": (400, "JSON"), "array": (400, "object"), "empty": (400, "JSON"),
            "utf8": (400, "UTF-8"), "depth": (400, "deep"), "large": (413, "bytes"),
        ]
        for (name, refusal) in refusals {
            #expect(result[name]?[0] == refusal.status, "\(name)")
            #expect(result[name]?[1]?.stringValue?.contains(refusal.words) == true, "\(name)")
        }
        #expect(result["accepted_599"] == 200 && result["never"] == 0 && result["serves"] == true)
    }

    @Test(arguments: [1, 2]) func connectionsThatCannotBe(loops: Int) async throws {
        let result = try await run("refused_connections", loops: loops)
        for (name, code) in ["unknown_key": 4001, "protocol_3": 4007, "protocol_99": 4007, "protocol_abc": 4006] {
            #expect(result[name] == [.int(Int64(code)), .int(Int64(code))], "\(name)")
        }
        #expect(result["accepted"] == [120, 120, 120, 120, 120, 120])
        #expect(result["echoed"] == ["pusher-channels-protocol-5", "pusher-channels-protocol-6", "pusher-channels-protocol-7"])
        #expect(result["serves"] == true)
    }

    @Test(arguments: [1, 2]) func badFramesAreAnswered(loops: Int) async throws {
        let result = try await run("bad_frames", loops: loops)
        // Errors without a code: a client that sees one stays connected.
        #expect(result["codes"]?.arrayValue?.allSatisfy { $0 == .null } == true && result["codes"]?.count == 13)
        #expect(result["refusals"]?.objectValue?.values.allSatisfy { $0 == .null } == true)
        #expect(result["refused_channels"]?.count == 6)
        #expect(result["acknowledged"] == 1 && result["control"] == true && result["open"] == true)
        #expect(result["invalid_utf8"] == 1007)
        #expect(result["huge"] == 1009)
        #expect(result["serves"] == true)
    }

    @Test func halfHandshakesDisturbNobody() async throws {
        let result = try await run("half_handshakes", loops: 1)
        #expect(result["serves"] == true && result["afterwards"] == true)
        #expect(result["late"]?.stringValue?.hasPrefix("HTTP/1.1 101") == true)
    }

    @Test(arguments: [1, 2]) func aSlowReaderIsLetGo(loops: Int) async throws {
        let result = try await run("slow_reader", loops: loops)
        #expect(result["received"] == result["published"])
        // One megabyte waits at most; the rest is what allocators keep, and a sanitizer keeps what was freed for a while.
        #expect((result["grown"]?.number ?? .infinity) < 32 * 1024 * (SlowBuild.isSanitized ? 10 : 1))
        #expect(result["serves"] == true)
    }

    @Test func chunkedBodies() async throws {
        #expect(try await run("chunked", loops: 2) == ["status": 200, "events": 1, "serves": true])
    }

    @Test func pipelinedRequests() async throws {
        #expect(try await run("pipelined", loops: 1) == ["told_as_answered": true, "serves": true])
    }
}
