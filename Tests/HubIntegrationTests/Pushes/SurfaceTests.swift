import Foundation
import HubCore
import Testing

/// Exactly one surface, with real sockets and simulated gateways: what receipts, grace and replay are for.
@Suite struct SurfaceTests {
    private static let board = """
        channel: presence-board-{session}
        replay: true
        events:
          news: { to: all, policy: notify, ttl: 10m, notification: { title: News, body: "There is news" } }
        """

    private static let pinboard = board.replacing("presence-board", with: "presence-pinboard") + "\nclear_siblings: true"

    /// Runs scenarios of surface.py one after another, each against a new hub on the same data.
    private func onTheBoard(_ scenarios: String..., environment: [String: String] = [:]) async throws -> [JSONValue] {
        try await Stage.run(seconds: 20) { stage in
            let environment = environment.merging(["STORE": stage.folder.appendingPathComponent("data/tandem.db").path]) { $1 }
            let file = try stage.write(Self.board, to: "channels/board.yaml")
            _ = try stage.write(Self.pinboard, to: "channels/pinboard.yaml")
            let gateways = try await stage.gateways()
            var results: [JSONValue] = []
            for scenario in scenarios {
                let hub = try await stage.hub(gateways: gateways, arguments: ["--channels", String(file.dropLast("/board.yaml".count))])
                let result = try await stage.python(
                    "pushes/surface.py", scenario, hub: hub, gateways: gateways, environment: environment)
                results.append(result)
            }
            return results
        }
    }

    @Test("killed while a receipt is awaited, another is stored and a push is to be tried again")
    func killed() async throws {
        let results = try await onTheBoard("killed", "after_the_kill")
        #expect(results[0]["early"] == 0 && results[0]["told"] == true)
        // Nobody is lost, who has confirmed is left alone, and the repeated push has its old name.
        #expect(results[1]["statuses"] == ["Ada": [200], "Ben": [], "Cleo": [503, 200]])
        #expect(results[1]["cleo"] == 1 && results[1]["events"] == [results[0]["event"] ?? .null])
    }

    @Test("a dead socket's notification comes at its deadline, and none where the answer came in time")
    func deadline() async throws {
        let result = try await onTheBoard("pong_in_time")[0]
        #expect(result["pushes"] == [0, 1] && result["confirmed"] == true)
        #expect((result["waited"]?.number ?? 0) >= 5, "notify waits five seconds for somebody live")
    }

    @Test("coming back before or after the push is taken, one visible notification")
    func returnedLate() async throws {
        let result = try await onTheBoard("returned_late", environment: ["RETRIES_TIME": "16"])[0]
        #expect(result["taken"] == [[503], [200]], "the receipt stops what is due; what was taken is not repeated")
        #expect(result["frames"] == [[true], [true]] && result["same"] == true && result["state"] == "confirmed")
    }

    @Test("read on one device, a notification is taken from the others that have it, once and without a sound")
    func cleared() async throws {
        let result = try await onTheBoard("cleared")[0]
        #expect(result["counts"] == [2, 2] && result["total"] == 4 && result["statuses"] == [200, 200] && result["read"] == true)
        #expect(result["headers"] == ["push-type": "background", "priority": "5", "collapse-id": .null])
        #expect(result["body"] == ["aps": ["content-available": 1], "type": "clear"])
        #expect(result["clears"] == true && result["event"] == true && result["own"] == true && result["expires"] == true)
        #expect(result["android"] == ["clear", true, false])
        #expect(result["trail"] == [["phone", "notification"], ["watch", "notification"], ["phone", "clear"], ["watch", "clear"]])
    }

    @Test("a device's word by HTTP takes a notification from the others as well")
    func clearedByWord() async throws {
        let result = try await onTheBoard("cleared_by_word")[0]
        #expect(result["count"] == 2 && result["headers"] == ["background", "5"] && result["clears"] == true)
    }

    @Test("a clear that was sent and not answered when the hub was killed goes out again under its name, once")
    func clearedAcrossAKill() async throws {
        let results = try await onTheBoard("clear_killed", "clear_resumed")
        #expect(results[1]["count"] == 3 && results[1]["status"] == 200 && results[1]["clears"] == [true, true])
        #expect(results[1]["same"] == [true, true, true] && results[1]["purposes"] == ["notification", "clear"])
        #expect(results[1]["event"] == results[0]["event"])
    }

    @Test("killed with everybody there, no push within the grace, and none afterwards but to who stays away")
    func fullHouse() async throws {
        let results = try await onTheBoard("full_house", "house_returns")
        #expect(results[0]["present"] == 40)
        #expect(results[1]["known"] == ["grace_server"] && results[1]["early"] == 0 && results[1]["total"] == 1)
        #expect((results[1]["waited"]?.number ?? 0) > 15, "who stays away is waited for until the grace is over")
    }

    @Test(arguments: [1, 2]) func aSocketThatNobodyReadsIsNoSurface(loops: Int) async throws {
        try await Stage.run(seconds: 20) { stage in
            let gateways = try await stage.gateways()
            let hub = try await stage.hub(loops: loops, gateways: gateways)
            let result = try await stage.python("pushes/surface.py", "half_open", hub: hub, gateways: gateways)
            #expect(result["pushes"] == [1, 0], "nobody is missed, nobody is told twice")
            #expect(result["still_connected"] == true, "long before the socket is given up")
            #expect(result["state"] == "live" && result["confirmed"] == true && result["same"] == true)
        }
    }

    @Test("a page answers for itself: pushed to when it is frozen, whatever its browser answers, and not when it runs")
    func pages() async throws {
        let result = try await onTheBoard("pages")[0]
        #expect(result["pushes"] == [0, 0, 4, 4, 0], "an answer in advance is none")
        #expect(result["told"] == [4, 4, 4, 4, 4] && result["confirmed"] == ["confirmed"])
        let asked = (result["asked"]?.arrayValue ?? []).map { $0.intValue ?? 0 }
        #expect(asked.count == 5 && asked.prefix(4).allSatisfy { (2...4).contains($0) } && asked.last == 0, "an app is asked by PING")
        #expect(result["waited"]?.arrayValue?.allSatisfy { $0.number ?? 0 >= 5 } == true, "notify waits five seconds for somebody live")
    }

    @Test(arguments: [1, 2]) func whoIsLetGoAsASlowConsumerIsAbsent(loops: Int) async throws {
        try await Stage.run(seconds: 20) { stage in
            let gateways = try await stage.gateways()
            let hub = try await stage.hub(loops: loops, gateways: gateways)
            let result = try await stage.python("pushes/surface.py", "let_go", hub: hub, gateways: gateways)
            #expect(result["absent"] == true, "from the moment of the 4100, which she has not even read")
            #expect(result["told"] == true, "what waited in her queue, and what came afterwards")
            #expect(result["pushes"] == [2, 0])
            #expect(["grace", "absent"].contains(result["known"]?.stringValue ?? ""), "\(result)")
        }
    }

    @Test(arguments: [1, 2]) func whoComesBackInTimeReadsItOnTheSocket(loops: Int) async throws {
        try await Stage.run(seconds: 20) { stage in
            let file = try stage.write(Self.board, to: "board.yaml")
            let gateways = try await stage.gateways()
            let hub = try await stage.hub(
                loops: loops, gateways: gateways, arguments: ["--channels", String(file.dropLast("/board.yaml".count))])
            let result = try await stage.python("pushes/surface.py", "returned", hub: hub, gateways: gateways)
            #expect(result["replayed"] == true && result["data"] == #"{"n": 1}"#, "all of it, in order")
            #expect(result["again"] == true, "once")
            #expect(result["pushes"] == 0)
        }
    }
}
