import HubCore
import Testing

/// Exactly one surface, with real sockets and simulated gateways: what receipts, grace and replay are for.
@Suite struct SurfaceTests {
    @Test(arguments: [1, 2]) func aSocketThatNobodyReadsIsNoSurface(loops: Int) async throws {
        try await Stage.run { stage in
            let gateways = try await stage.gateways()
            let hub = try await stage.hub(loops: loops, gateways: gateways)
            let result = try await stage.python("surface.py", "half_open", hub: hub, gateways: gateways)
            #expect(result["pushes"] == [1, 0], "nobody is missed, nobody is told twice")
            #expect(result["still_connected"] == true, "long before the socket is given up")
            #expect(result["state"] == "live" && result["confirmed"] == true && result["same"] == true)
        }
    }

    @Test(arguments: [1, 2]) func whoComesBackInTimeReadsItOnTheSocket(loops: Int) async throws {
        try await Stage.run { stage in
            let definition = """
                channel: presence-board-{session}
                replay: true
                events:
                  news: { to: all, policy: notify, ttl: 10m, notification: { title: News, body: "There is news" } }
                """
            let file = try stage.write(definition, to: "board.yaml")
            let gateways = try await stage.gateways()
            let hub = try await stage.hub(loops: loops, gateways: gateways, arguments: ["--channels", String(file.dropLast("/board.yaml".count))])
            let result = try await stage.python("surface.py", "returned", hub: hub, gateways: gateways)
            #expect(result["replayed"] == true && result["data"] == #"{"n": 1}"#, "all of it, in order")
            #expect(result["again"] == true, "once")
            #expect(result["pushes"] == 0)
        }
    }
}
