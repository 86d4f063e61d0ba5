import HubCore
import HubDelivery
import Testing

@testable import HubAPI

@Suite("Dead letters")
struct DeadLettersTests {
    /// Sends to a topic, and has the push fail.
    private func fail(_ hub: Hub, _ topic: String, _ outcome: String) async throws -> PushRecord {
        _ = try await hub.call(
            "POST", "notifications", ["to": ["topic": .string(topic)], "notification": ["title": "secret text"], "ttl": 600])
        var delivery = try #require(hub.pushes.deliveries.last)
        hub.clock.advance(seconds: 1)
        let now = hub.clock.wallMilliseconds
        (delivery.state, delivery.attempts, delivery.outcome) = (.failed, 3, outcome)
        delivery.attempt = DeliveryAttempt(number: 3, startedAt: now - 20, endedAt: now, answer: outcome)
        try await hub.events.store.update([delivery])
        return delivery
    }

    private func reasons(_ hub: Hub, _ query: [String: String] = [:]) async throws -> [String?] {
        try await hub.call("GET", "dead-letters", query: query)["dead_letters"]?.arrayValue?.map { $0["reason"]?.stringValue } ?? []
    }

    @Test("are listed without texts, page by page, and shown with them one by one")
    func reading() async throws {
        let hub = try Hub()
        let first = try await fail(hub, "a", "http 503: gave up")
        _ = try await fail(hub, "b", "INVALID_ARGUMENT")
        let page = try await hub.call("GET", "dead-letters", query: ["limit": "1"])
        let entry: JSONValue = [
            "nid": .string(first.nid), "event_id": .string(first.event), "user": "", "device": "topic", "provider": "fcm",
            "reason": "http 503: gave up", "attempts": 3, "failed_at": "2026-01-09T01:00:01.250Z",
        ]
        #expect(page["dead_letters"] == [entry])
        let next = try #require(page["next"]?.stringValue)
        let rest = try await hub.call("GET", "dead-letters", query: ["after": next])
        #expect(rest["next"] == .null && rest["dead_letters"]?.arrayValue?.count == 1)
        #expect(try await reasons(hub, ["reason": "http 503"]) == ["http 503: gave up"])

        let one = try await hub.call("GET", "dead-letters/\(first.nid)/topic")
        #expect(one["message"]?["title"] == "secret text" && one["answers"]?.arrayValue?.first?["attempt"] == 3)
        #expect(one["nid"] == .string(first.nid) && one["message"]?["expires_at"] == "2026-01-09T01:10:00.250Z")
        #expect(try await hub.call("GET", "dead-letters/\(first.nid)/phone").status == 404)
        #expect(try await hub.call("GET", "dead-letters/\(first.nid)/topic", app: "2").status == 404)
        #expect(try await hub.call("GET", "dead-letters", query: ["after": "x"]).status == 400)
        #expect(try await hub.call("PUT", "dead-letters").status == 405)
    }

    @Test("are sent again by name or by reason, with a count that begins anew")
    func replaying() async throws {
        let hub = try Hub()
        let first = try await fail(hub, "a", "http 503: gave up")
        let second = try await fail(hub, "b", "INVALID_ARGUMENT")
        let answer = try await hub.call("POST", "dead-letters/replay", ["nids": [.string(first.nid.uppercased()), "nowhere"]])
        #expect(answer["replayed"] == 1 && answer["more"] == false)
        #expect(answer["refused"]?.arrayValue?.map { $0["nid"]?.stringValue } == ["nowhere"])
        let again = try #require(hub.pushes.deliveries.last)
        #expect(again.nid == first.nid && again.state == .due && again.attempts == 0 && again.address?.text == "a")
        #expect(try await reasons(hub) == ["INVALID_ARGUMENT"])

        hub.clock.advance(seconds: 601)
        let expired = try await hub.call("POST", "dead-letters/replay", ["nids": [.string(second.nid)]])
        #expect(expired["replayed"] == 0 && expired["refused"]?.arrayValue?.first?["error"]?.stringValue?.contains("ttl") == true)
        #expect(try await hub.call("POST", "dead-letters/replay", ["reason": "INVALID_ARGUMENT"])["replayed"] == 0)
        let revived = try await hub.call(
            "POST", "dead-letters/replay", ["reason": "INVALID_ARGUMENT", "before": "2026-01-09T01:00:03Z", "ttl": "5m"])
        #expect(revived["replayed"] == 1)
        #expect(hub.pushes.deliveries.last?.message?.expiresAt == hub.clock.wallMilliseconds + 300_000)
    }

    @Test(
        "a replay says what it means",
        arguments: [
            [:], ["nids": []], ["nids": [1]], ["nids": ["a"], "reason": "b"], ["reason": ""], ["before": "yesterday"],
            ["reason": "x", "all": true],
            ["nids": ["a"], "ttl": 0],
        ] as [JSONValue])
    func refusals(body: JSONValue) async throws {
        let hub = try Hub()
        #expect(try await hub.call("POST", "dead-letters/replay", body).status == 400)
        #expect(try await hub.call("GET", "dead-letters/replay").status == 405)
    }

    @Test("are dismissed one by one, or by reason and time")
    func dismissing() async throws {
        let hub = try Hub()
        let first = try await fail(hub, "a", "http 503")
        _ = try await fail(hub, "b", "http 503")
        _ = try await fail(hub, "c", "UNREGISTERED")
        #expect(try await hub.call("DELETE", "dead-letters/\(first.nid)/topic").status == 200)
        #expect(try await hub.call("DELETE", "dead-letters/\(first.nid)/topic").status == 404)
        #expect(try await hub.call("DELETE", "dead-letters", query: ["reason": "http 503"]).json == ["dismissed": 1, "more": false])
        #expect(try await reasons(hub) == ["UNREGISTERED"])
        #expect(try await hub.events.store.deliveries(event: first.event).first?.outcome == "dismissed: http 503")
    }
}
