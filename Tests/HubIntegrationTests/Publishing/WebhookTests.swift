import HubCore
import HubTesting
import Synchronization
import Testing

/// Webhooks from a running hub to a server of their own, judged by the official library of a backend.
@Suite struct WebhookTests {
    private func configuration(_ url: String) -> String {
        """
        apps:
          - id: "1"
            key: app-key
            secret: app-secret
            webhooks:
              - url: \(url)/hook
                events: [channel_occupied, channel_vacated, member_added, member_removed, client_event, cache_miss]
        """
    }

    /// Has the requests validated; returns their events.
    private func validate(_ requests: [LocalHTTPServer.Request], stage: Stage, hub: Hub) async throws -> [JSONValue] {
        let received = requests.map { request in
            JSONValue.object([
                "key": .string(request.headers["x-pusher-key"] ?? ""), "signature": .string(request.headers["x-pusher-signature"] ?? ""),
                "content_type": .string(request.headers["content-type"] ?? ""), "body": .string(request.text),
            ])
        }
        let file = try stage.write(JSONValue.array(received).text, to: "webhooks.json")
        let result = try await stage.python("publishing/webhooks.py", "validate", hub: hub, environment: ["WEBHOOKS": file])
        return result["events"]?.arrayValue ?? []
    }

    @Test(arguments: [1, 2]) func whatHappensIsToldAndAReloadIsNot(loops: Int) async throws {
        let server = try LocalHTTPServer { _ in .answer(200) }
        defer { server.stop() }
        try await Stage.run { stage in
            let file = try stage.write(configuration(server.url), to: "tandem.yaml")
            let hub = try await stage.hub(loops: loops, arguments: ["--config", file])
            let socketID = try await stage.python("publishing/webhooks.py", "visits", hub: hub)["socket_id"] ?? .null
            try await eventually("the last good-byes") {
                server.requests.map(\.text).joined().components(separatedBy: "channel_vacated").count == 3
            }
            let events = try await validate(server.requests, stage: stage, hub: hub)
            func names(_ channel: JSONValue) -> [JSONValue?] { events.filter { $0["channel"] == channel }.map { $0["name"] } }
            #expect(
                names("presence-room") == [
                    "channel_occupied", "member_added", "client_event", "client_event", "member_removed", "channel_vacated",
                ])
            #expect(Set(names("cache-news")) == ["channel_occupied", "cache_miss", "channel_vacated"] && names("cache-news").count == 3)
            #expect(
                events.last { $0["name"] == "client_event" } == [
                    "name": "client_event", "channel": "presence-room", "event": "client-wave", "data": "text",
                    "socket_id": .string(socketID.stringValue ?? ""), "user_id": "ada",
                ])
            #expect(events.first { $0["name"] == "client_event" }?["data"]?.stringValue?.contains("\"to\"") == true)
            #expect(events.first { $0["name"] == "member_removed" }?["user_id"] == "ada")
        }
    }

    @Test func killedBeforeItWasDelivered() async throws {
        let works = Atomic(false)
        let server = try LocalHTTPServer { _ in .answer(works.load(ordering: .relaxed) ? 200 : 500) }
        defer { server.stop() }
        try await Stage.run { stage in
            let file = try stage.write(configuration(server.url), to: "tandem.yaml")
            let first = try await stage.hub(arguments: ["--config", file])
            _ = try await stage.python("publishing/webhooks.py", "occupy", hub: first)
            try await eventually("a first attempt") { !server.requests.isEmpty }
            await first.process.end()
            works.store(true, ordering: .relaxed)
            // Where the machine is slow, the hub may have had the time to tell that the channel is empty again.
            let told = { server.requests.filter { String(decoding: $0.body, as: UTF8.self).contains("channel_occupied") } }
            let failed = told().count
            let second = try await stage.hub(arguments: ["--config", file])
            try await eventually("the attempt after the restart") { told().count > failed }
            let requests = told()
            #expect(requests.allSatisfy { $0.body == requests[0].body && $0.headers == requests[0].headers })
            #expect(try await validate(requests, stage: stage, hub: second).allSatisfy { $0["name"] == "channel_occupied" })
        }
    }

    @Test func endedBeforeTheGoodByesWereDue() async throws {
        let server = try LocalHTTPServer { _ in .answer(200) }
        defer { server.stop() }
        try await Stage.run { stage in
            let file = try stage.write(configuration(server.url), to: "tandem.yaml")
            let hub = try await stage.hub(arguments: ["--config", file])
            _ = try await stage.python("publishing/webhooks.py", "occupy", hub: hub)
            try await eventually("the webhook of the visit") { !server.requests.isEmpty }
            hub.process.send(15)
            #expect(try await hub.process.waitForEnd() == .init(code: 0, wasSignalled: false))
            #expect(server.requests.last?.text.contains("channel_vacated") == true)
        }
    }
}
