import HubCore
import HubDelivery
import HubTesting
import Testing

@testable import HubAPI

@Suite("The live route")
struct LiveTests {
    @Test("answers at once when there is something, and after its time when there is nothing")
    func pages() async throws {
        let hub = try Hub()
        let first = try await hub.call("GET", "live")
        #expect(first.status == 200 && first["items"] == [] && first["gap"] == false && first["node"] == .null)
        let cursor = try #require(first["cursor"]?.stringValue)
        hub.live.note(app: "1", .join, channel: "presence-quiz-s1", user: "u") { .join(socket: "1.2") }
        let second = try await hub.call("GET", "live", query: ["after": cursor])
        #expect(
            second["items"] == [
                ["at": "2026-01-09T01:00:00.250Z", "kind": "join", "channel": "presence-quiz-s1", "user": "u", "socket": "1.2"]
            ])
        let next = try #require(second["cursor"]?.stringValue)
        let third = try await hub.call("GET", "live", query: ["after": next, "wait": "1"])
        #expect(third["items"] == [] && third["gap"] == false && third["sampled"] == 0 && third["cursor"]?.stringValue == next)
    }

    @Test("a question that waits is answered by the next fact, and by the end of the hub")
    func waiting() async throws {
        let hub = try Hub()
        let query = ["kind": "receipt,push"]
        let cursor = try #require(try await hub.call("GET", "live", query: query)["cursor"]?.stringValue)
        let push = PushRecord(nid: "n", event: "e", app: "1", user: "u", device: "d", state: .failed, reason: "", dueAt: 0, outcome: "gone")
        // Whether they come before the question or while it waits makes no difference.
        Task { [live = hub.live] in
            live.note(app: "1", .join, channel: nil, user: nil) { .join(socket: "1.2") }
            live.note([push])
        }
        let answer = try await hub.call("GET", "live", query: query.merging(["after": cursor]) { $1 })
        let items = answer["items"]?.arrayValue
        #expect(items?.count == 1 && items?.first?["state"] == "failed" && items?.first?["answer"] == "gone")
        #expect(items?.first?["channel"] == .null && items?.first?["nid"] == "n" && items?.first?["device"] == "d")
        hub.live.close()
        let last = try await hub.call("GET", "live", query: query.merging(["after": answer["cursor"]?.stringValue ?? ""]) { $1 })
        #expect(last["items"] == [])
    }

    @Test("a question ends when its listener asks another one, so a page that is reloaded leaves none behind")
    func superseded() async throws {
        let hub = try Hub()
        let cursor = try #require(try await hub.call("GET", "live")["cursor"]?.stringValue)
        let (backend, app) = (hub.backend, try #require(hub.apps.app(id: "1")))
        let ask: @Sendable (_ wait: String) async -> Int? = { wait in
            let query = [(name: "after", value: cursor), (name: "wait", value: wait)]
            let request = HTTPRequest(method: "GET", path: "/apps/1/live", query: query)
            let response = await backend.respond(to: request, app: app, pathComponents: ["live"])
            return response.flatMap { Answer($0)["items"]?.arrayValue?.count }
        }
        let count = Guarded<Int?>(nil)
        async let first: Void = {
            let items = await ask("\(LiveResource.waitSecondsMax)")
            count.withLock { $0 = items }
        }()
        let isEnded = await eventually(within: .seconds(10)) {
            _ = await ask("0")
            return count.withLock { $0 } != nil
        }
        #expect(isEnded && count.withLock { $0 } == 0, "it ends with nothing, and before its own time")
        await first
        hub.live.note(app: "1", .join, channel: "c", user: "u") { .join(socket: "1.2") }
        #expect(await ask("0") == 1)
    }

    @Test("refuses unknown words, and more listeners than it has room for")
    func refusals() async throws {
        let hub = try Hub()
        for query in [["kind": "joins"], ["kind": ""], ["wait": "26"], ["wait": "-1"]] {
            #expect(try await hub.call("GET", "live", query: query).status == 400)
        }
        #expect(try await hub.call("POST", "live").status == 405)
        for _ in 0..<LiveStream.listenersMax { #expect(try await hub.call("GET", "live").status == 200) }
        let refused = try await hub.call("GET", "live")
        #expect(refused.status == 429 && refused.headers["Retry-After"] == "5")
    }
}
