import HubCore
import HubDelivery
import Testing

@testable import HubAPI

@Suite("Direct sends")
struct NotificationsTests {
    private let text: JSONValue = ["title": "Welcome", "body": "Start exploring now."]

    /// The device in both: what registers and what sends read different stores here.
    private func register(_ hub: Hub, _ user: String, _ id: String = "phone", _ members: [String: JSONValue] = [:]) async throws {
        let body: [String: JSONValue] = ["token": .string("t-\(user)-\(id)"), "platform": "android"]
        let answer = try await hub.call("PUT", "users/\(user)/devices/\(id)", .object(body.merging(members) { $1 }))
        #expect(answer.status == 200, "\(answer.error)")
    }

    private func send(_ hub: Hub, to: JSONValue, _ more: [String: JSONValue] = [:], key: String? = nil) async throws -> Answer {
        let body: [String: JSONValue] = ["to": to, "notification": text]
        return try await hub.call(
            "POST", "notifications", .object(body.merging(more) { $1 }), headers: key.map { ["idempotency-key": $0] } ?? [:])
    }

    @Test("users get it on each of their devices; who has none is named, in answer and trail")
    func users() async throws {
        let hub = try Hub()
        try await register(hub, "ann")
        try await register(hub, "ann", "pad")
        try await register(hub, "eve", "phone", ["notifications": false])
        let answer = try await send(
            hub, to: ["users": ["ann", "bob", "eve", "ann"]], ["data": ["action": "NONE"], "ttl": "2h", "group": "welcome"])
        let event = try #require(answer["event_id"]?.stringValue)
        #expect(answer.status == 200)
        #expect(answer.json == ["event_id": .string(event), "devices": 2, "unreachable": ["bob", "eve"], "unreachable_count": 2])
        let sent = hub.pushes.deliveries
        #expect(sent.map(\.device).sorted() == ["pad", "phone"] && sent.allSatisfy { $0.user == "ann" && $0.state == .due })
        let message = try #require(sent.first?.message)
        #expect(
            message.title == "Welcome" && message.data == ["action": "NONE"] && message.group == "welcome" && message.policy == .pushOnly)
        #expect(message.nid == NotificationID.make(event: event, app: "1", user: "ann") && message.sequence == 1)
        #expect(message.expiresAt == hub.clock.wallMilliseconds + 7_200_000 && message.kind == .alert)
        // Committed before it was answered.
        #expect(try await hub.events.store.openDeliveries(limit: 10).count == 2)

        let trail = try await hub.call("GET", "events/\(event)/deliveries")
        #expect(trail["event"]?["channel"] == "#notifications" && trail["recipients"] == 3)
        let rows = trail["deliveries"]?.arrayValue ?? []
        #expect(rows.map { $0["decision"]?.stringValue } == ["push", "no_device", "permission_denied"])
        #expect(rows[0]["pushes"]?.arrayValue?.count == 2 && rows[1]["state"] == "undeliverable")
        let history = try await hub.call("GET", "channels/#notifications/history")
        let stored = try JSONValue(parsing: history["events"]?.arrayValue?.first?["data"]?.stringValue ?? "")
        #expect(stored == ["notification": text, "data": ["action": "NONE"]])
    }

    @Test("tokens go to the gateway that a registration would choose, each once, under names instead of devices")
    func tokens() async throws {
        let hub = try Hub(environment: .sandbox)
        let answer = try await send(
            hub,
            to: [
                "tokens": [
                    .string(fcmToken), .string(hexToken), .string(hexToken.lowercased()), ["fid": "fid-1", "platform": "ios"],
                    ["token": .string(hexToken), "provider": "fcm", "platform": "ios"],
                    ["token": .string(String(repeating: "b", count: 64)), "platform": "ios", "environment": "production"],
                ]
            ])
        #expect(answer.status == 200 && answer["devices"] == 5 && answer["unreachable"] == nil)
        let sent = hub.pushes.deliveries
        #expect(sent.map(\.device) == ["token-1", "token-2", "token-4", "token-5", "token-6"] && sent.allSatisfy { $0.user == "" })
        #expect(Set(sent.map(\.nid)).count == 5)
        let addresses = sent.compactMap(\.address)
        #expect(
            addresses.map(\.provider) == [.fcm, .apns, .fcm, .fcm, .apns]
                && addresses.map(\.form) == [.token, .token, .fid, .token, .token])
        #expect(addresses.map(\.environment) == [.sandbox, .sandbox, .sandbox, .sandbox, .production])
        let event = try #require(answer["event_id"]?.stringValue)
        #expect(try await hub.events.store.deliveries(event: event).map(\.address?.text).contains(fcmToken))
        let trail = try await hub.call("GET", "events/\(event)/deliveries").json.text
        #expect(!trail.contains(fcmToken) && trail.contains("token-4"))
    }

    @Test("a topic and a condition are FCM's")
    func topics() async throws {
        let hub = try Hub()
        #expect(try await send(hub, to: ["topic": "news-1"])["devices"] == 1)
        #expect(try await send(hub, to: ["condition": "'a' in topics && !('b' in topics)"])["devices"] == 1)
        #expect(hub.pushes.deliveries.compactMap(\.address).map(\.form) == [.topic, .condition])
        #expect(hub.pushes.deliveries.compactMap(\.address).allSatisfy { $0.provider == .fcm })
        #expect(hub.pushes.deliveries.map(\.device) == ["topic", "condition"])
    }

    @Test(
        "what cannot be sent is refused before anything is stored, and no token is repeated",
        arguments: [
            (["notification": ["title": "t"]], 400, "to is missing"), (["to": [:], "notification": ["title": "t"]], 400, "exactly one"),
            (["to": ["users": ["a"], "topic": "t"], "notification": ["title": "t"]], 400, "users and topic"),
            (["to": ["token": "SECRET"], "notification": ["title": "t"]], 400, "to.token is unknown"),
            (["to": ["users": []], "notification": ["title": "t"]], 400, "1 to 10000"),
            (["to": ["users": [7]], "notification": ["title": "t"]], 400, "not a string"),
            (["to": ["tokens": ["SECRET TOKEN"]], "notification": ["title": "t"]], 400, "not a device token"),
            (["to": ["tokens": [["platform": "ios"]]], "notification": ["title": "t"]], 400, "neither token nor fid"),
            (["to": ["topic": "/topics/news"], "notification": ["title": "t"]], 400, "without /topics/"),
            (["to": ["condition": "a in topics"], "notification": ["title": "t"]], 400, "no expression"),
            (["to": ["topic": "t"]], 400, "nothing to send"), (["to": ["topic": "t"], "notificaton": ["title": "t"]], 400, "notification"),
            (["to": ["topic": "t"], "notification": ["title": "t"], "deliver_at": "2030-01-01T00:00:00Z"], 400, "deliver_at"),
            (["to": ["topic": "t"], "notification": ["title": "t"], "policy": "both"], 400, "policy"),
            (["to": ["topic": "t"], "notification": ["title": "t"], "policy": "sync"], 400, "sync shows nothing"),
            (["to": ["topic": "t"], "notification": ["title": "t"], "ttl": "0s"], 400, "ttl"),
            (["to": ["topic": "t"], "notification": ["title": "t"], "ttl": 2_419_201], 400, "ttl"),
            (["to": ["topic": "t"], "notification": ["title": "t"], "once": "x"], 400, "users"),
            (["to": ["users": ["a"]], "notification": ["title": "t"], "once": .string(String(repeating: "k", count: 101))], 400, "once"),
            (["to": ["users": ["a"]], "notification": ["title": .string(String(repeating: "t", count: 17_000))]], 413, "16384"),
        ] as [(JSONValue, Int, String)])
    func refusals(body: JSONValue, status: Int, mentions: String) async throws {
        let hub = try Hub()
        let answer = try await hub.call("POST", "notifications", body)
        #expect(answer.status == status && answer.error.contains(mentions), "\(answer.status) \(answer.error)")
        #expect(!answer.error.contains("SECRET") && hub.pushes.deliveries.isEmpty)
        #expect(try await hub.events.store.history(app: "1", channel: "#notifications", after: 0, limit: 1).isEmpty)
    }

    @Test("the same key is sent once, and answered the same")
    func idempotency() async throws {
        let hub = try Hub()
        try await register(hub, "ann")
        let first = try await send(hub, to: ["users": ["ann"]], key: "k1")
        let again = try await send(hub, to: ["users": ["ann"]], key: "k1")
        #expect(first.status == 200 && again.json == first.json && again.headers["Idempotency-Replayed"] == "true")
        #expect(hub.pushes.deliveries.count == 1)
        #expect(try await send(hub, to: ["users": ["bob"]], key: "k1").status == 422)
        // A refusal is nobody's for good.
        #expect(try await send(hub, to: ["users": []], key: "k2").status == 400)
        #expect(try await send(hub, to: ["users": ["ann"]], key: "k2").status == 200)
        #expect(try await send(hub, to: ["users": ["ann"]], key: "ü").status == 400)
    }

    @Test("what is for once reaches each user once for ever, and who could not be reached another time")
    func once() async throws {
        let hub = try Hub()
        try await register(hub, "ann")
        let first = try await send(hub, to: ["users": ["ann", "bob"]], ["once": "welcome"])
        #expect(first["devices"] == 1 && first["unreachable"] == ["bob"] && first["skipped"] == 0)
        try await register(hub, "bob")
        let second = try await send(hub, to: ["users": ["ann", "bob"]], ["once": "welcome"])
        #expect(second["devices"] == 1 && second["skipped"] == 1)
        #expect(hub.pushes.deliveries.map(\.user) == ["ann", "bob"])
        let third = try await send(hub, to: ["users": ["ann", "bob"]], ["once": "welcome"])
        #expect(third.json == ["event_id": .null, "devices": 0, "unreachable": [], "unreachable_count": 0, "skipped": 2])
        #expect(try await send(hub, to: ["users": ["ann"]], ["once": "other"])["devices"] == 1)
    }

    @Test("of many at the same time one sends what is for once")
    func onceAtOnce() async throws {
        let hub = try Hub()
        try await register(hub, "ann")
        let body: JSONValue = ["to": ["users": ["ann"]], "notification": text, "once": "welcome"]
        let request = HTTPRequest(method: "POST", path: "/apps/1/notifications", body: body.serialized())
        let (backend, app) = (hub.backend, try #require(hub.apps.app(id: "1")))
        let devices = await withTaskGroup(of: Int64?.self) { group in
            for _ in 0..<8 {
                group.addTask { await backend.respond(to: request, app: app, pathComponents: ["notifications"])?.json["devices"]?.intValue }
            }
            return await group.reduce(into: [Int64?]()) { $0.append($1) }
        }
        #expect(devices.compactMap(\.self).reduce(0, +) == 1 && hub.pushes.deliveries.count == 1, "\(devices)")
    }

    @Test("a trial says what would happen, and nothing does")
    func trial() async throws {
        let hub = try Hub()
        try await register(hub, "ann")
        let answer = try await send(hub, to: ["users": ["ann", "bob"]], ["validate_only": true, "once": "welcome"])
        #expect(
            answer.json == [
                "event_id": .null, "devices": 1, "unreachable": ["bob"], "unreachable_count": 1, "skipped": 0, "validate_only": true,
            ])
        #expect(hub.pushes.deliveries.isEmpty)
        #expect(try await hub.events.store.sentOnce(app: "1", key: "welcome", users: ["ann"]).isEmpty)
        #expect(try await hub.events.store.openDeliveries(limit: 1).isEmpty)
    }

    @Test("data alone wakes the app silently; a stale device is left asleep, and woken by what is critical")
    func policies() async throws {
        let hub = try Hub()
        try await register(hub, "ann")
        let silent = try await hub.call("POST", "notifications", ["to": ["users": ["ann"]], "data": ["n": 1]])
        #expect(silent["devices"] == 1)
        #expect(hub.pushes.deliveries.last?.message?.kind == .silent && hub.pushes.deliveries.last?.message?.policy == .sync)
        hub.clock.advance(seconds: 31 * 86_400)
        #expect(try await send(hub, to: ["users": ["ann"]])["unreachable_count"] == 1)
        #expect(try await send(hub, to: ["users": ["ann"]], ["policy": "critical"])["devices"] == 1)
        hub.clock.advance(seconds: 240 * 86_400)
        #expect(try await send(hub, to: ["users": ["ann"]], ["policy": "critical"])["devices"] == 0)
    }

    @Test(
        "topics and conditions are read as FCM reads them",
        arguments: [
            ("'a' in topics", true), ("'a' in topics && ('b' in topics || 'c' in topics)", true), ("!('a' in topics)", true),
            ("('a' in topics)||'b-_.~%' in topics", true),
            ("'a' in topics || 'b' in topics || 'c' in topics || 'd' in topics || 'e' in topics", true),
            ("'a' in topics || 'b' in topics || 'c' in topics || 'd' in topics || 'e' in topics || 'f' in topics", false), ("", false),
            ("'a'", false), ("'a' in topic", false), ("'a b' in topics", false), ("'a' in topics &&", false), ("('a' in topics", false),
            ("'a' in topics)", false), ("'a'in topics", false), ("'' in topics", false), ("\"a\" in topics", false),
            ("'a' in topics & 'b' in topics", false),
            (String(repeating: "(", count: 200) + "'a' in topics" + String(repeating: ")", count: 200), false),
            (String(repeating: "!", count: 4_000) + "'a' in topics", false),
        ])
    func conditions(text: String, isGood: Bool) {
        #expect(TopicText.isCondition(text) == isGood, "\(text.prefix(80))")
    }
}
