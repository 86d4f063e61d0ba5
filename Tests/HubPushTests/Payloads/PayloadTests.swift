import HubCore
import HubDelivery
import Testing

@testable import HubPush

@Suite("APNsPayload")
struct APNsPayloadTests {
    private func payload(_ message: PushMessage) throws -> (headers: [String: String], root: JSONValue) {
        let payload = try APNsPayload(message, topic: "com.example.app", device: "device-1", now: now)
        return (payload.headers, try json(payload.body))
    }

    @Test("an alert spells out title and body, and carries ids and data beside aps")
    func alert() throws {
        let (headers, root) = try payload(
            message(
                data: ["game_id": 7, "parameters": ["radius_m": 3000], "nid": "forged"],
                apns: ["sound": "default", "interruption-level": "time-sensitive", "content-available": 1, "mutable-content": true],
                group: "g.q17"))
        #expect(headers["apns-topic"] == "com.example.app")
        #expect(headers["apns-push-type"] == "alert")
        #expect(headers["apns-priority"] == "10")
        #expect(headers["apns-expiration"] == "1767921000")
        #expect(headers["apns-collapse-id"] == "g.q17")
        #expect(root.at("aps", "alert") == ["title": "Session Started! 🎯", "body": "The quiz session has begun."])
        #expect(root.at("aps", "sound") == "default")
        #expect(root.at("aps", "interruption-level") == "time-sensitive")
        #expect(root.at("aps", "content-available") == 1)
        #expect(root.at("aps", "mutable-content") == 1)
        #expect(root["game_id"] == 7)
        #expect(root.at("parameters", "radius_m") == 3000)
        #expect(root["nid"] == "4d0a6f6e-8e6c-4a1b-9a53-0d1f6f0a9c11")
        #expect(root["event_id"] == "0e2f8f7e-52f0-4d5a-93a4-6f6f6f6f6f6f")
        #expect(root["seq"] == 42)
        #expect(root["ts"] == .int(now - 1500))
    }

    @Test("a silent push is background, priority 5, and has nothing visible")
    func silent() throws {
        let (headers, root) = try payload(
            message(
                kind: .silent, title: "leak", body: "leak", data: ["event_type": "phase_changed"],
                apns: ["sound": "default", "badge": 3, "alert": "leak"], sequence: 0))
        #expect(headers["apns-push-type"] == "background")
        #expect(headers["apns-priority"] == "5")
        #expect(root["aps"] == ["content-available": 1])
        #expect(root["event_type"] == "phase_changed")
        #expect(root["seq"] == nil)
    }

    @Test("the definition's alert members add to the text, and a picture asks for the service extension")
    func alertMembers() throws {
        let (_, root) = try payload(message(image: "https://example.com/a.png", apns: ["alert": ["subtitle": "Round 2"], "badge": .null]))
        #expect(root.at("aps", "alert", "subtitle") == "Round 2")
        #expect(root.at("aps", "alert", "title") == "Session Started! 🎯")
        #expect(root.at("aps", "mutable-content") == 1)
        #expect(root.at("aps")?.objectValue?["badge"] == nil)
        #expect(root["image_url"] == "https://example.com/a.png")
    }

    @Test(
        "collapse ids fit a header of 64 bytes",
        arguments: [
            (String(repeating: "g", count: 64), true), (String(repeating: "g", count: 65), false), ("ä", false), ("a b", false),
            ("a\nb", false),
        ])
    func collapse(group: String, kept: Bool) throws {
        let collapse = try #require(try payload(message(group: group)).headers["apns-collapse-id"])
        #expect((collapse == group) == kept)
        if !kept { #expect(collapse.utf8.count == 32) }
        #expect(try payload(message(group: group)).headers["apns-collapse-id"] == collapse)
    }

    @Test("no group, no collapse id")
    func noCollapse() throws {
        #expect(try payload(message(group: nil)).headers["apns-collapse-id"] == nil)
        #expect(try payload(message(group: "")).headers["apns-collapse-id"] == nil)
    }

    @Test("the request id is a UUID of notification and device, the same every time")
    func requestID() throws {
        let first = RequestID.make(nid: "n", device: "d")
        #expect(first == RequestID.make(nid: "n", device: "d"))
        #expect(Set([first, RequestID.make(nid: "n", device: "e"), RequestID.make(nid: "nd", device: "")]).count == 3)
        #expect(first.wholeMatch(of: /[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/) != nil)
        #expect(try payload(message()).headers["apns-id"] == RequestID.make(nid: message().nid, device: "device-1"))
    }

    @Test("text is cut to exactly 4096 bytes, body first", arguments: ["x", "ä", "\"", "\u{1}"])
    func truncation(unit: String) throws {
        let long = message(body: String(repeating: unit, count: 5000), data: ["id": "kept"])
        let payload = try APNsPayload(long, topic: "t", device: "d", now: now)
        // One more character would not fit.
        let unitBytes = JSONValue.string(unit).serialized().count - 2
        #expect(payload.body.count <= 4096)
        #expect(payload.body.count > 4096 - unitBytes)
        let root = try json(payload.body)
        #expect(root.at("aps", "alert", "title") == "Session Started! 🎯")
        #expect(root.at("aps", "alert", "body")?.stringValue?.hasSuffix(unit + "…") == true)
        #expect(root["id"] == "kept")
    }

    @Test("a payload of 4096 bytes passes unchanged, one more byte cuts it")
    func boundary() throws {
        let base = try APNsPayload(message(body: ""), topic: "t", device: "d", now: now).body.count
        for (count, cut) in [(4096 - base, false), (4097 - base, true)] {
            let payload = try APNsPayload(message(body: String(repeating: "b", count: count)), topic: "t", device: "d", now: now)
            #expect(payload.body.count == 4096)
            #expect(try json(payload.body).at("aps", "alert", "body")?.stringValue?.hasSuffix("…") == cut)
        }
    }

    @Test("characters of several code points are not cut in half")
    func graphemes() throws {
        let family = "👨‍👩‍👧‍👦"
        let payload = try APNsPayload(
            message(body: String(repeating: family, count: 400)), topic: "t", device: "d", now: now)
        let body = try #require(try json(payload.body).at("aps", "alert", "body")?.stringValue)
        #expect(Set(body.dropLast()) == [Character(family)])
    }

    @Test("the title gives way after the body")
    func titleToo() throws {
        let payload = try APNsPayload(
            message(title: String(repeating: "t", count: 6000), body: String(repeating: "b", count: 6000)), topic: "t",
            device: "d", now: now)
        #expect(payload.body.count == 4096)
        let alert = try json(payload.body).at("aps", "alert")
        #expect(alert?["body"] == "…")
        #expect(alert?["title"]?.stringValue?.hasSuffix("t…") == true)
    }

    @Test(
        "what cannot be sent is said clearly",
        arguments: [
            (message(data: ["blob": .string(String(repeating: "x", count: 4100))]), "4096"),
            (message(kind: .silent, title: nil, body: nil, data: ["blob": .string(String(repeating: "x", count: 4100))]), "4096"),
            (message(data: ["aps": ["badge": 1]]), "aps"), (message(life: 0), "expired"),
        ])
    func faults(message: PushMessage, names: String) throws {
        let fault = try #require(throws: PayloadFault.self) { try APNsPayload(message, topic: "t", device: "d", now: now) }
        #expect(fault.reason.contains(names))
        #expect(!fault.reason.contains("xxx"))
    }
}

@Suite("FCMPayload")
struct FCMPayloadTests {
    private func sent(_ message: PushMessage, _ target: PushTarget = target()) throws -> JSONValue {
        try #require(try json(try FCMPayload(message, target: target, now: now).body)["message"])
    }

    @Test("every data value is a string; null goes, empty stays")
    func data() throws {
        let sent = try sent(
            message(data: [
                "session_id": 123, "ok": true, "ratio": .double(0.5), "empty": "", "none": .null, "text": "a\"b",
                "parameters": ["radius_m": 3000, "list": [1, "x", .null]], "list": [1, 2],
            ]))
        let expected: JSONValue = [
            "session_id": "123", "ok": "true", "ratio": "0.5", "empty": "", "text": "a\"b",
            "parameters": "{\"list\":[1,\"x\",null],\"radius_m\":3000}", "list": "[1,2]",
            "nid": "4d0a6f6e-8e6c-4a1b-9a53-0d1f6f0a9c11", "event_id": "0e2f8f7e-52f0-4d5a-93a4-6f6f6f6f6f6f", "seq": "42",
            "ts": .string(String(now - 1500)),
        ]
        #expect(sent["data"] == expected)
    }

    @Test(
        "reserved data keys are refused by name",
        arguments: ["from", "message_type", "google.x", "googleX", "gcm.notification.a", "gcm", ""])
    func reserved(key: String) throws {
        let fault = try #require(throws: PayloadFault.self) { try sent(message(data: [key: "SECRET"])) }
        #expect(fault.reason.contains("\"\(key)\""))
        #expect(!fault.reason.contains("SECRET"))
    }

    @Test("an alert has a notification, high priority, tag and time to live")
    func alert() throws {
        let sent = try sent(
            message(
                image: "https://example.com/a.png",
                android: [
                    "channel_id": "session_notifications", "sound": "default", "notification_priority": "high", "color": "#4CAF50",
                    "icon": "ic_notification", "restricted_package_name": "com.example", "direct_boot_ok": true,
                ], group: "s123.phase"))
        #expect(sent["token"] == "TOKEN")
        #expect(
            sent["notification"] == [
                "title": "Session Started! 🎯", "body": "The quiz session has begun.", "image": "https://example.com/a.png",
            ])
        #expect(
            sent["android"] == [
                "priority": "HIGH", "ttl": "600s", "restricted_package_name": "com.example", "direct_boot_ok": true,
                "notification": [
                    "channel_id": "session_notifications", "sound": "default", "notification_priority": "PRIORITY_HIGH",
                    "color": "#4CAF50", "icon": "ic_notification", "tag": "s123.phase",
                ],
            ])
        #expect(sent["apns"] == nil)
    }

    @Test("a silent push has no notification and normal priority whatever the definition says")
    func silent() throws {
        let sent = try sent(message(kind: .silent, android: ["priority": "high", "channel_id": "game"], group: "g.phase"))
        #expect(sent["notification"] == nil)
        #expect(sent["android"] == ["priority": "NORMAL", "ttl": "600s", "collapse_key": "g.phase"])
    }

    @Test(
        "the time to live is what remains, or less when asked for",
        arguments: [
            (600, nil, "600s"), (600, .string("60s"), "60s"), (600, .int(30), "30s"), (600, .string("9000s"), "600s"),
            (600, .string("soon"), "600s"), (600, .int(-5), "600s"), (10_000_000, nil, "2419200s"), (1, nil, "1s"),
        ] as [(Int64, JSONValue?, String)])
    func timeToLive(life: Int64, asked: JSONValue?, expected: String) throws {
        let sent = try sent(message(android: asked.map { ["ttl": $0] } ?? [:], life: life))
        #expect(sent.at("android", "ttl")?.stringValue == expected)
    }

    @Test("the definition may lower an alert's priority, and its nested notification block is merged")
    func overrides() throws {
        let sent = try sent(message(android: ["priority": "normal", "notification": ["ticker": "t", "sound": "a"], "sound": "b"]))
        #expect(sent.at("android", "priority") == "NORMAL")
        #expect(sent.at("android", "notification", "ticker") == "t")
        #expect(sent.at("android", "notification", "sound") == "b")
    }

    @Test("android.data keeps the ids, because FCM lets it replace the message's data")
    func androidData() throws {
        let sent = try sent(message(data: ["a": 1], android: ["data": ["a": 2, "b": true, "nid": "forged"]]))
        #expect(sent.at("android", "data", "a") == "2")
        #expect(sent.at("android", "data", "b") == "true")
        #expect(sent.at("android", "data", "nid") == "4d0a6f6e-8e6c-4a1b-9a53-0d1f6f0a9c11")
        #expect(sent.at("data", "a") == "1")
    }

    @Test("an iOS device gets an explicit alert, or a background push with priority 5")
    func ios() throws {
        let alert = try sent(message(apns: ["sound": "default"], group: "g"), target(platform: .ios))
        #expect(
            alert.at("apns", "headers") == [
                "apns-priority": "10", "apns-push-type": "alert", "apns-collapse-id": "g", "apns-expiration": "1767921000",
            ])
        #expect(
            alert.at("apns", "payload") == [
                "aps": ["alert": ["title": "Session Started! 🎯", "body": "The quiz session has begun."], "sound": "default"]
            ])
        let silent = try sent(message(kind: .silent), target(platform: .ios))
        #expect(silent.at("apns", "headers", "apns-priority") == "5")
        #expect(silent.at("apns", "headers", "apns-push-type") == "background")
        #expect(silent.at("apns", "payload") == ["aps": ["content-available": 1]])
    }

    @Test("text is cut so that everything but the token fits 4096 bytes", arguments: [DevicePlatform.android, .ios])
    func truncation(platform: DevicePlatform) throws {
        let sent = try sent(message(body: String(repeating: "ä", count: 5000)), target(platform: platform))
        var members = try #require(sent.objectValue)
        members["token"] = nil
        let count = JSONValue.object(members).serialized().count
        // The body stands twice in a message to an iOS device.
        #expect(count <= 4096 && count > 4096 - 2 * 2)
        #expect(sent.at("notification", "body")?.stringValue?.hasSuffix("ä…") == true)
        if platform == .ios { #expect(sent.at("apns", "payload", "aps", "alert", "body") == sent.at("notification", "body")) }
    }

    @Test("data that is too large, or a push too late, is refused")
    func faults() throws {
        let large = try #require(throws: PayloadFault.self) { try sent(message(data: ["a": .string(String(repeating: "x", count: 4200))])) }
        #expect(large.reason.contains("4096"))
        let late = try #require(throws: PayloadFault.self) { try sent(message(life: 0)) }
        #expect(late.reason.contains("expired"))
    }
}
