import HubCore
import HubTesting
import Testing

/// Pusher's protocol with stock clients and the official backend library, on one loop and across two.
@Suite struct ProtocolTests {
    private func run(_ scenario: String, loops: Int) async throws -> JSONValue {
        try await Stage.run { stage in
            let hub = try await stage.hub(loops: loops)
            let result = try await stage.python("publishing/protocol.py", scenario, hub: hub)
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

    /// A publish that one loop has answered goes out on every loop before a publish that another loop takes later.
    @Test(arguments: [1, 4]) func inOrderOverConnectionsOfDifferentLoops(loops: Int) async throws {
        let result = try await run("ordering_across", loops: loops)
        #expect(result["ordered"]?.count == 8 && result["ordered"]?.arrayValue?.allSatisfy { $0 == true } == true)
    }

    @Test func chunkedBodies() async throws {
        #expect(try await run("chunked", loops: 2) == ["status": 200, "events": 1, "serves": true])
    }

    @Test func pipelinedRequests() async throws {
        #expect(try await run("pipelined", loops: 1) == ["told_as_answered": true, "serves": true])
    }
}
