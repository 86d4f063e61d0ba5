import HubCore
import HubDefinitions
import HubDelivery
import HubJSON
import Testing

@testable import HubPush

/// Kinds, push types, targets and sizes of notifications with everything a backend may say.
@Suite struct PayloadContentTests {
    /// The notification of a send request.
    private func content(_ text: String, group: String? = nil) throws -> PushMessage {
        let json = try #require(try JSONValue(parsing: Array(text.utf8)).objectValue)
        return try NotificationContent(json: json).message(
            nid: "4d0a6f6e-8e6c-4a1b-9a53-0d1f6f0a9c11", event: "0e2f8f7e-52f0-4d5a-93a4-6f6f6f6f6f6f", group: group,
            expiresAt: now + 600_000,
            committedAt: now - 1500)
    }

    private func sent(_ message: PushMessage, _ target: PushTarget = target()) throws -> JSONValue {
        try #require(try json(try FCMPayload(message, target: target, now: now).body)["message"])
    }

    private func apns(_ message: PushMessage) throws -> (headers: [String: String], root: JSONValue) {
        let payload = try APNsPayload(message, topic: "com.example.app", device: "d", now: now)
        return (payload.headers, try json(payload.body))
    }

    @Test("A visible message of the kind data carries its text and its id in the data") func dataKind() throws {
        let text =
            #"{"kind": "data", "notification": {"title": "T", "body": "B"}, "data": {"order_id": 7}, "android": {"channel_id": "orders"}}"#
        let message = try content(text, group: "order.7")
        let sent = try sent(message)
        #expect(sent["notification"] == nil)
        #expect(sent.at("android", "notification") == nil)
        #expect(sent.at("android", "priority") == "HIGH")
        #expect(sent.at("android", "collapse_key") == "order.7")
        #expect(sent.at("data", "title") == "T" && sent.at("data", "body") == "B" && sent.at("data", "channel_id") == "orders")
        let id = try #require(sent.at("data", "notification_id")?.stringValue)
        #expect(Int32(id).map { $0 >= 0 } == true)
        #expect(try self.sent(try content(text, group: "order.7")).at("data", "notification_id") == .string(id))
        #expect(try self.sent(try content(text, group: "order.8")).at("data", "notification_id") != .string(id))
        // On Apple's devices a background push could not show it.
        let apple = try self.sent(message, target(platform: .ios))
        #expect(apple.at("apns", "headers", "apns-push-type") == "alert")
        #expect(apple.at("apns", "payload", "aps", "alert") == ["title": "T", "body": "B"])
    }

    @Test("A published number reaches Apple's devices and browsers as a number, and FCM's data as text") func types() throws {
        let text = """
            channel: presence-game-{session}
            events:
              asked:
                to: all
                policy: critical
                notification: { title: "{{radius_m}}", body: B }
                data: { radius_m: "{{radius_m}}", parameters: { radius_m: "{{radius_m}}", on: "{{on}}" }, text: "{{radius_m}}{{! text}}" }
                apns: { thread-id: "{{radius_m}}", payload: { data: { parameters: { radius_m: "{{radius_m}}" } } } }
                webpush: { notification: { data: { radius_m: "{{radius_m}}" } } }
            """
        let definition = try #require(try DefinitionSet.load([("game.yaml", text)]).definition(named: "game"))
        let event = EventRecord(
            id: "0e2f8f7e-52f0-4d5a-93a4-6f6f6f6f6f6f", app: "1", channel: "presence-game-7", name: "asked", data: "", policy: .critical,
            committedAt: now, expiresAt: now + 600_000)
        var rendering = Rendering(
            definition: definition, event: event, channel: .init(session: "7", user: nil), session: nil,
            data: ["radius_m": 3000, "on": true])
        let variant = try #require(definition.events["asked"]?.variants.first)
        let message = try #require(try rendering.message(variant, user: "ann", participant: nil))
        let root = try apns(message).root
        #expect(root.at("data", "parameters", "radius_m") == 3000 && root["radius_m"] == 3000 && root["text"] == "3000")
        #expect(root["parameters"] == ["radius_m": 3000, "on": true])
        #expect(root.at("aps", "thread-id") == "3000" && root.at("aps", "alert", "title") == "3000")
        let sent = try sent(message, target(platform: .web))
        #expect(sent.at("data", "radius_m") == "3000" && sent.at("data", "parameters") == #"{"on":true,"radius_m":3000}"#)
        #expect(sent.at("webpush", "notification", "data", "radius_m") == 3000)
    }

    @Test("Data alone is a background push of priority 5 on Apple's devices") func dataOnly() throws {
        let message = try content(#"{"data": {"a": 1}, "apns": {"content-available": 1}}"#)
        let sent = try sent(message, target(platform: .ios))
        #expect(sent.at("apns", "headers", "apns-priority") == "5")
        #expect(sent.at("apns", "headers", "apns-push-type") == "background")
        #expect(sent.at("apns", "payload") == ["aps": ["content-available": 1]])
        #expect(sent.at("android", "priority") == "NORMAL")
        #expect(try apns(message).headers["apns-push-type"] == "background")
    }

    @Test("An alert with content-available stays an alert, and aps without alert gets the text") func alertStays() throws {
        let message = try content(
            #"{"notification": {"title": "T", "body": "B", "image": "https://x/y.png"}, "apns": {"payload": {"aps": {"sound": "default", "badge": 1, "mutable-content": 1, "content-available": 1}, "order_id": 7}}}"#
        )
        let (headers, root) = try apns(message)
        #expect(headers["apns-push-type"] == "alert" && headers["apns-priority"] == "10")
        #expect(
            root["aps"] == [
                "alert": ["title": "T", "body": "B"], "sound": "default", "badge": 1, "mutable-content": 1, "content-available": 1,
            ])
        #expect(root["order_id"] == 7)
        let sent = try sent(message, target(platform: .ios))
        #expect(sent.at("apns", "payload", "order_id") == 7)
        #expect(sent.at("apns", "fcm_options", "image") == "https://x/y.png")
    }

    @Test("Each target has its own field", arguments: [TargetForm.token, .fid, .topic, .condition])
    func targets(form: TargetForm) throws {
        var target = target(token: "TEXT")
        target.form = form
        let sent = try sent(try content(#"{"notification": {"title": "T"}}"#), target)
        #expect(["token", "fid", "topic", "condition"].filter { sent[$0] != nil } == [form.rawValue])
        #expect(sent[form.rawValue] == "TEXT")
        let isMany = form == .topic || form == .condition
        #expect((sent["apns"] != nil) == isMany && (sent["webpush"] != nil) == isMany && sent["android"] != nil)
    }

    @Test("A web browser gets headers that replace and expire") func webpush() throws {
        let message = try content(
            #"{"notification": {"title": "T", "body": "B"}, "webpush": {"notification": {"icon": "i"}, "fcm_options": {"link": "https://x"}}, "fcm_options": {"analytics_label": "l"}}"#,
            group: "order 7")
        let sent = try sent(message, target(platform: .web))
        #expect(sent.at("webpush", "headers", "TTL") == "600" && sent.at("webpush", "headers", "Urgency") == "high")
        #expect(sent.at("webpush", "headers", "Topic")?.stringValue?.wholeMatch(of: /[A-Za-z0-9_-]{1,32}/) != nil)
        #expect(sent.at("webpush", "notification") == ["icon": "i", "title": "T", "body": "B", "tag": "order 7"])
        #expect(sent.at("webpush", "fcm_options", "link") == "https://x")
        #expect(sent.at("fcm_options", "analytics_label") == "l")
        let silent = try self.sent(try content(#"{"data": {"a": 1}}"#, group: "g"), target(platform: .web))
        #expect(silent.at("webpush", "headers") == ["TTL": "600", "Urgency": "normal", "Topic": "g"])
    }

    @Test("A Live Activity goes to its own token under its own topic") func liveActivity() throws {
        let message = try content(
            #"{"live_activity": {"token": "ABCD", "event": "update", "content-state": {"score": 3}}, "notification": {"title": "T", "body": "B"}}"#
        )
        let (headers, root) = try apns(message)
        #expect(headers["apns-topic"] == "com.example.app.push-type.liveactivity")
        #expect(headers["apns-push-type"] == "liveactivity" && headers["apns-priority"] == "10")
        #expect(
            root["aps"] == [
                "event": "update", "content-state": ["score": 3], "timestamp": .int((now - 1500) / 1000),
                "alert": ["title": "T", "body": "B"],
            ])
        let sent = try sent(message, target(platform: .ios))
        #expect(sent.at("apns", "live_activity_token") == "ABCD")
        #expect(sent.at("apns", "payload", "aps", "event") == "update")
        #expect(message.addressed(to: target(.apns, token: "FF")) { _ in }.target.token == "ABCD")
        #expect(try content(#"{"notification": {"title": "T"}}"#).addressed(to: target(.apns, token: "FF")) { _ in }.target.token == "FF")
    }

    @Test(
        "A push type has its topic, its priority and its size",
        arguments: APNsPushType.allCases.filter { ![.liveactivity, .background].contains($0) })
    func pushTypes(type: APNsPushType) throws {
        let message = try content(#"{"notification": {"title": "T"}, "apns": {"headers": {"apns-push-type": "\#(type.rawValue)"}}}"#)
        let headers = try apns(message).headers
        #expect(headers["apns-push-type"] == type.rawValue)
        #expect(headers["apns-topic"] == "com.example.app" + type.topicSuffix)
        #expect(headers["apns-priority"] == "10")
    }

    @Test("VoIP has room for 5120 bytes") func voip() throws {
        let body = String(repeating: "b", count: 4500)
        let payload = try APNsPayload(
            try content(#"{"notification": {"body": "\#(body)"}, "apns": {"headers": {"apns-push-type": "voip"}}}"#), topic: "t",
            device: "d", now: now)
        #expect(payload.body.count > 4500 && payload.body.count <= 5120)
    }

    @Test("Headers that are asked for win, where APNs allows them") func headers() throws {
        let message = try content(
            #"{"notification": {"title": "T"}, "apns": {"headers": {"apns-priority": "5", "apns-collapse-id": "c", "apns-expiration": "7"}}}"#,
            group: "g")
        let headers = try apns(message).headers
        #expect(headers["apns-priority"] == "5" && headers["apns-collapse-id"] == "c" && headers["apns-expiration"] == "7")
        let other = try content(#"{"notification": {"title": "T"}, "apns": {"headers": {"apns-topic": "com.other"}}}"#)
        #expect(throws: PayloadFault.self) { try apns(other) }
    }

    @Test("android_v2 stands in place of android") func androidV2() throws {
        let shown = try sent(
            try content(
                #"{"notification": {"title": "T"}, "android_v2": {"ttl": "60s", "remote_notification": {"notification": {"id": 5, "channel_id": "c"}}}}"#,
                group: "g"))
        #expect(shown["android"] == nil)
        #expect(shown["android_v2"] == ["ttl": "60s", "remote_notification": ["notification": ["id": 5, "channel_id": "c", "tag": "g"]]])
        let silent = try sent(try content(#"{"data": {"a": 1}, "android_v2": {"ttl": "60s"}}"#, group: "g"))
        #expect(silent["android_v2"] == ["ttl": "60s", "collapse_key": "g", "background_sync": [:]])
    }

    private func size(_ sent: JSONValue, without target: String) -> Int {
        JSONValue.object((sent.objectValue ?? [:]).filter { $0.key != target }).serialized().count
    }

    @Test(
        "FCM's limit is met to the byte, with characters of any length",
        arguments: ["b", "ä", "🎯", "👨‍👩‍👧‍👦", "e\u{301}"], [(TargetForm.token, 4096), (.topic, 2048), (.condition, 2048)])
    func boundary(unit: String, limit: (form: TargetForm, bytes: Int)) throws {
        var target = target(platform: .android, token: "t")
        target.form = limit.form
        func send(_ body: String) throws -> JSONValue { try sent(message(title: nil, body: body), target) }
        func longest(_ count: Int) -> String { String(repeating: unit, count: count) }
        // Where the text stands more than once, each byte counts as often.
        let base = size(try send("b"), without: limit.form.rawValue)
        let copies = size(try send("bb"), without: limit.form.rawValue) - base
        let room = (limit.bytes - base) / copies + 1
        let units = room / unit.utf8.count
        let fitting = longest(units) + String(repeating: "b", count: room - units * unit.utf8.count)
        let whole = try send(fitting)
        #expect(whole.at("notification", "body")?.stringValue == fitting)
        let bytes = size(whole, without: limit.form.rawValue)
        #expect(bytes <= limit.bytes && bytes > limit.bytes - copies)
        let cut = try send(fitting + "b")
        let text = try #require(cut.at("notification", "body")?.stringValue)
        #expect(text.hasSuffix("…") && size(cut, without: limit.form.rawValue) <= limit.bytes)
        #expect(fitting.hasPrefix(text.dropLast()) && Set(text.dropLast()).isSubset(of: [Character(unit), "b"]))
    }

    @Test("Texts that a platform says differently are cut too") func platformTexts() throws {
        let long = String(repeating: "ä", count: 3000)
        let message = try content(
            #"{"notification": {"title": "T", "body": "B"}, "android": {"body": "\#(long)"}, "apns": {"alert": {"body": "\#(long)"}}}"#)
        #expect(try sent(message).at("android", "notification", "body")?.stringValue?.hasSuffix("ä…") == true)
        #expect(try sent(message).at("notification", "body") == "B")
        #expect(try apns(message).root.at("aps", "alert", "body")?.stringValue?.hasSuffix("ä…") == true)
    }

    /// The first check builds one message for all platforms. A message that it lets through has to pass each of them, and it must let
    /// short ones through.
    @Test("One message for all platforms tells what fits each of them", arguments: [0, 1, 2]) func everywhere(form: Int) throws {
        var fits = 0
        for count in stride(from: 0, to: 1_500, by: 13) {
            let filler = String(repeating: "ä\"", count: count)
            var tried = message(title: "T", body: form == 0 ? filler : "B")
            if form == 1 { tried.data["nested"] = .object(["blob": .string(filler)]) }
            if form == 2 { tried.apns["thread-id"] = .string(filler) }
            guard FCMPayload.fitsEverywhere(tried, now: now) else { continue }
            fits += 1
            for platform in [DevicePlatform.ios, .android, .web] {
                let sent = try FCMPayload(tried, target: target(platform: platform), now: now)
                #expect(sent.body.count < FCMPayload.bytesMax + 200)
            }
            #expect(try APNsPayload(tried, topic: "org.example.quiz", device: "d", now: now).body.count <= APNsPayload.bytesMax)
        }
        #expect(fits > 5)
        let fault = message(data: ["google.c": .string("x")])
        #expect(!FCMPayload.fitsEverywhere(fault, now: now) && PayloadSizes().problem(fault)?.contains("which FCM reserves") == true)
    }

    @Test("A notification that can never fit is refused before it is stored, with its size") func refused() throws {
        let check = PayloadSizes()
        #expect(check.problem(message(body: String(repeating: "b", count: 9000))) == nil)
        let large = message(data: ["blob": .string(String(repeating: "x", count: 4000))])
        let problem = try #require(check.problem(large))
        #expect(problem.contains("bytes for FCM even without its text, which is more than FCM's 4096 bytes"))
        // Messages that pass here pass at every gateway, whatever their ids.
        var tight = message(data: [:])
        tight.sequence = 0
        for count in stride(from: 2500, to: 4096, by: 7) {
            tight.data = ["blob": .string(String(repeating: "x", count: count))]
            guard check.problem(tight) == nil else { continue }
            for platform in [DevicePlatform.ios, .android, .web] {
                _ = try FCMPayload(tight, target: target(platform: platform), now: now)
            }
            _ = try APNsPayload(tight, topic: "org.example.quiz", device: "d", now: now)
        }
        var topic = target(token: "news")
        topic.form = .topic
        #expect(check.problem(message(data: ["blob": .string(String(repeating: "x", count: 2000))]), to: topic)?.contains("2048") == true)
    }
}
