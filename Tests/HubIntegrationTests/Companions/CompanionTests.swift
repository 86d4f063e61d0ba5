import Foundation
import HubCore
import Testing

/// Companions against a real hub and simulated gateways: whatever they say, nobody is told twice, and nobody is missed.
@Suite struct CompanionTests {
    private static let board = """
        channel: presence-board-{session}
        replay: true
        alerts: { burst: 1000, every: 1s }
        events:
          alarm: { to: all, policy: critical, ttl: 10m, notification: { title: Alarm, body: "It rings" } }
          news: { to: all, policy: notify, ttl: 10m, notification: { title: News, body: "There is news" } }
        """

    /// `make test-companions` sets this where it has installed the compilers.
    static let isRequired = ProcessInfo.processInfo.environment["TANDEM_TEST_COMPANIONS"] == "1"

    /// - Parameter companion: the command that runs it.
    private func run(
        _ script: String, platform: String = "android", companion: (Stage) async throws -> [String] = { _ in [] }
    ) async throws -> JSONValue {
        try await Stage.run(seconds: 50) { stage in
            let command = try await companion(stage).map { "'\($0)'" }.joined(separator: " ")
            let file = try stage.write(Self.board, to: "channels/board.yaml")
            let gateways = try await stage.gateways()
            let hub = try await stage.hub(gateways: gateways, arguments: ["--channels", String(file.dropLast("/board.yaml".count))])
            return try await stage.python(
                "companions/\(script).py", "all", hub: hub, gateways: gateways, environment: ["COMPANION": command, "PLATFORM": platform])
        }
    }

    /// The same for every companion.
    private func check(_ result: JSONValue) {
        let (shown, gone): (JSONValue, JSONValue) = (["confirmed", "live", "await_receipt"], ["pushed", "bg", "push"])
        #expect(result["states"] == ["seen": [shown, gone, shown, shown, gone], "pushes": 2], "who left the screen is pushed to at once")
        #expect(
            result["confirmed"] == ["states": ["pushed", "pushed"], "taken": "true", "refused": ["false", "false"], "others": .null])
        #expect(result["token_rotated"] == ["taken": ["true", "true", "true"], "first": true, "second": true])
        let withdrawn = result["permission_withdrawn"]
        #expect(withdrawn?["taken"] == ["true", "true"] && withdrawn?["ended"] == "undeliverable")
        #expect(withdrawn?["pushed"] == true && withdrawn?["fetched"] == true, "an event that is not pushed can be fetched")
        let out = result["logged_out"]
        #expect(out?["states"] == [false, 2] && out?["pushes"] == [0, 1] && out?["fetched"] == [true, true])
        #expect(out?["ended"] == ["undeliverable", "pushed"])
        #expect(result["another_user"] == ["ended": ["undeliverable", "pushed"], "pushed": true, "fetched": [true, true]])
    }

    @Test("the companion in Swift keeps every promise, with a stand-in for PusherSwift")
    func swift() async throws {
        let program = Place.products.appendingPathComponent("tandem-companion").path
        check(try await run("companions", platform: "ios") { _ in [program] })
    }

    @Test(
        "the companion in Java keeps every promise, with stubs of pusher-websocket-java and of androidx",
        .enabled(if: AndroidCompanion.hasJava || CompanionTests.isRequired, "needs a JDK 17"))
    func java() async throws {
        check(try await run("companions", companion: AndroidCompanion.java))
    }

    @Test(
        "the companion in Kotlin keeps every promise, with the same stubs",
        .enabled(if: AndroidCompanion.hasKotlin || CompanionTests.isRequired, "needs a JDK 17 and kotlinc: make test-companions"))
    func kotlin() async throws {
        check(try await run("companions", companion: AndroidCompanion.kotlin))
    }

    @Test("of several tabs one on the screen is enough; a companion that is old, absent or lies loses no event")
    func frames() async throws {
        let result = try await run("frames")
        let (shown, gone): (JSONValue, JSONValue) = (["confirmed", "live", "await_receipt"], ["pushed", "bg", "push"])
        #expect(result["tabs"] == ["seen": [shown, gone, shown, shown, gone], "pushes": 2])
        #expect(result["old"] == ["ended": ["confirmed", "pushed"], "state": "unknown"])
        #expect(result["absent"] == ["ended": ["pushed", "pushed"], "status": 200, "known": true])
        let lies = result["lies"]
        #expect(lies?["ended"] == ["pushed", "pushed", "pushed", "pushed", "pushed", "pushed"] && lies?["told"] == true)
        #expect(lies?["statuses"] == [404, 404, 200], "nobody confirms for somebody else")
        #expect(lies?["flood"] == [200, 429])
    }
}
