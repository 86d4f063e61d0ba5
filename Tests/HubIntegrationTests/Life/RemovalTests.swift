import HubCore
import HubJSON
import Testing

/// Taking somebody off a roster, ending a session and ending a user's connections, seen from open sockets.
@Suite struct RemovalTests {
    private func run(_ scenario: String, loops: Int) async throws -> JSONValue {
        try await Stage.run { stage in
            let hub = try await stage.hub(loops: loops)
            return try await stage.python("life/removals.py", scenario, hub: hub)
        }
    }

    @Test("who is taken off the roster is out on every socket, and comes back by joining", arguments: [1, 2])
    func removed(loops: Int) async throws {
        let result = try await run("removed", loops: loops)
        #expect(result["statuses"] == [[403], [403], [403]] && result["closed"] == [.null, .null, .null])
        #expect(result["after"] == [0, 0, 0] && result["hello"] == 0 && result["gone"] == true)
        #expect(result["auth"] == 401 && result["refused"] == [403, 403], "the old signature is no way back")
    }

    @Test(
        "the end of a session ends every subscription of its channel, and a new one of its name reaches nobody of them", arguments: [1, 2])
    func ended(loops: Int) async throws {
        let result = try await run("ended", loops: loops)
        #expect(result["statuses"] == [[403, 403], [403, 403]])
        #expect(result["new"] == [0, 0] && result["members"] == 1)
    }

    @Test("terminate_connections ends who is a member, or has the user in a channel's name, without a sign-in", arguments: [1, 2])
    func terminated(loops: Int) async throws {
        let result = try await run("terminated", loops: loops)
        #expect(result["codes"] == [4009, 4009, 4009, 4009] && result["others"] == [.null, .null])
    }

    @Test("a quiz of more than a hundred is let in, and told of each other") func crowd() async throws {
        let result = try await run("crowd", loops: 2)
        #expect(result["errors"] == 0 && result["listed"] == 131)
    }
}
