internal import HubCore

/// The platform blocks of a notification in FCM v1's own form; members of the flat form are moved to their places.
struct PlatformContent: Sendable, Equatable {
    /// `headers`, `payload` with `aps` and the app's own members, `fcm_options`, `live_activity_token`.
    var apns: [String: JSONValue] = [:]
    /// AndroidConfig, with its `notification`.
    var android: [String: JSONValue] = [:]
    var androidV2: [String: JSONValue] = [:]
    var webpush: [String: JSONValue] = [:]
    var fcmOptions: [String: JSONValue] = [:]

    /// Members of a definition's event, or of a send request, that the blocks are read from.
    static let names = ["apns", "android", "android_v2", "webpush", "fcm_options", "live_activity"]

    init() {}

    /// - Parameter members: by the names in `names`; others are ignored.
    init(_ members: [String: JSONValue], reader: inout ContentReader) {
        if let value = members["apns"] { apns = Self.apns(value, &reader) }
        if let value = members["live_activity"] { addActivity(value, &reader) }
        if let value = members["android"] { android = Self.android(value, &reader) }
        if let value = members["android_v2"] {
            androidV2 = reader.members(value, ContentSchema.androidV2, at: ["android_v2"])
            if members["android"] != nil {
                reader.note(["android_v2"], .sentence("FCM takes one of android and android_v2; keep one of them"))
            }
        }
        if let value = members["webpush"] { webpush = Self.webpush(value, &reader) }
        if let value = members["fcm_options"] { fcmOptions = reader.members(value, ContentSchema.options, at: ["fcm_options"]) }
    }

    /// Blocks in the form of `members`, with values filled in; they are not checked again.
    init(canonical members: [String: JSONValue]) {
        apns = members["apns"]?.objectValue ?? [:]
        android = members["android"]?.objectValue ?? [:]
        androidV2 = members["android_v2"]?.objectValue ?? [:]
        webpush = members["webpush"]?.objectValue ?? [:]
        fcmOptions = members["fcm_options"]?.objectValue ?? [:]
    }

    /// Filled-in blocks, without a Live Activity whose token is empty: the app runs none that could be updated.
    static func withoutIdleActivity(_ members: [String: JSONValue]) -> [String: JSONValue] {
        guard var apns = members["apns"]?.objectValue, apns["live_activity_token"] == "" else { return members }
        apns["live_activity_token"] = nil
        var payload = apns["payload"]?.objectValue ?? [:]
        payload["aps"] = .object((payload["aps"]?.objectValue ?? [:]).filter { !ContentSchema.activity.names.contains($0.key) })
        apns["payload"] = .object(payload)
        return members.merging(["apns": .object(apns)]) { $1 }
    }

    /// The blocks by name, without empty ones.
    var members: [String: JSONValue] {
        let blocks = ["apns": apns, "android": android, "android_v2": androidV2, "webpush": webpush, "fcm_options": fcmOptions]
        return blocks.filter { !$0.value.isEmpty }.mapValues(JSONValue.object)
    }

    /// These blocks, overridden member by member by a more particular content; lists are replaced.
    func merged(under particular: PlatformContent) -> PlatformContent {
        PlatformContent(
            canonical: JSONValue.object(members).merged(under: .object(particular.members)).objectValue ?? [:])
    }

    /// Notes members of one block that contradict each other.
    func check(_ reader: inout ContentReader) {
        checkApple(&reader)
        checkAndroid(&reader)
    }

    var aps: [String: JSONValue] { apns["payload"]?["aps"]?.objectValue ?? [:] }
    var apnsHeaders: [String: JSONValue] { apns["headers"]?.objectValue ?? [:] }
    /// Members next to `aps`.
    var apnsRoot: [String: JSONValue] { (apns["payload"]?.objectValue ?? [:]).filter { $0.key != "aps" } }
    var androidNotification: [String: JSONValue] { android["notification"]?.objectValue ?? [:] }

    // MARK: Reading

    private static func apns(_ value: JSONValue, _ reader: inout ContentReader) -> [String: JSONValue] {
        var config = reader.members(value, ContentSchema.apnsFlat, at: ["apns"])
        let flat = config.filter { ContentSchema.aps.members[$0.key] != nil }
        for name in flat.keys { config[name] = nil }
        var payload = config["payload"]?.objectValue ?? [:]
        for key in payload.keys.sorted() where key != "aps" {
            if payload[key] == .null {
                payload[key] = nil
            } else if DataKey.own.contains(key) {
                reader.note(["apns", "payload", key], .sentence("the hub adds a member of this name itself; rename it"))
            }
        }
        let path = ["apns", "payload", "aps"]
        let nested = payload["aps"].map { reader.members($0, ContentSchema.aps, at: path) } ?? [:]
        for name in flat.keys.sorted() where nested[name] != nil {
            reader.note(path + [name], .sentence("stands also in apns, which means the same; keep one of them"))
        }
        payload["aps"] = .object(flat.merging(nested) { flat, _ in flat })
        config["payload"] = .object(payload)
        return config
    }

    private mutating func addActivity(_ value: JSONValue, _ reader: inout ContentReader) {
        var members = reader.members(value, ContentSchema.liveActivity, at: ["live_activity"])
        let token = members.removeValue(forKey: "token")
        if members["event"] == nil { reader.note(["live_activity"], .sentence("has no event; write start, update or end")) }
        for name in members.keys.sorted() where aps[name] != nil {
            reader.note(["live_activity", name], .sentence("stands also in apns, which means the same; keep one of them"))
        }
        var payload = apns["payload"]?.objectValue ?? [:]
        payload["aps"] = .object(aps.merging(members) { own, _ in own })
        apns["payload"] = .object(payload)
        // An app without a running activity has no token for it, so there is nothing to update.
        if let token, token != "" { apns["live_activity_token"] = token }
    }

    private static func android(_ value: JSONValue, _ reader: inout ContentReader) -> [String: JSONValue] {
        var config = reader.members(value, ContentSchema.androidFlat, at: ["android"])
        let flat = config.filter { ContentSchema.androidConfig.members[$0.key] == nil }
        for name in flat.keys { config[name] = nil }
        let nested = config["notification"]?.objectValue ?? [:]
        for name in flat.keys.sorted() where nested[name] != nil {
            reader.note(["android", name], .sentence("stands also in android.notification, which means the same; keep one of them"))
        }
        let notification = flat.merging(nested) { flat, _ in flat }
        if !notification.isEmpty { config["notification"] = .object(notification) }
        return config
    }

    private static func webpush(_ value: JSONValue, _ reader: inout ContentReader) -> [String: JSONValue] {
        let block = reader.members(value, ContentSchema.webpush, at: ["webpush"])
        if let ttl = block["headers"]?["TTL"]?.stringValue, !reader.isTagged(ttl) {
            let seconds = Int64(ttl)
            if !ContentText.isDigits(ttl) || seconds ?? .max > ContentSchema.ttlSecondsMax {
                reader.note(["webpush", "headers", "TTL"], .sentence("expected seconds from \"0\" to \"\(ContentSchema.ttlSecondsMax)\""))
            }
        }
        if let topic = block["headers"]?["Topic"]?.stringValue, !reader.isTagged(topic), !ContentText.isWebTopic(topic) {
            reader.note(["webpush", "headers", "Topic"], .sentence("expected 1 to 32 of the characters a-z, A-Z, 0-9, - and _"))
        }
        return block
    }

    // MARK: Consistency

    private func checkAndroid(_ reader: inout ContentReader) {
        let v2 = androidV2["remote_notification"]?["notification"]?.objectValue ?? [:]
        for (notification, path) in [
            (androidNotification, ["android", "notification"]), (v2, ["android_v2", "remote_notification", "notification"]),
        ] {
            for part in ["title", "body"] where notification[part + "_loc_args"] != nil && notification[part + "_loc_key"] == nil {
                reader.note(
                    path + [part + "_loc_args"], .sentence("fills in the text that \(part)_loc_key names; write \(part)_loc_key too"))
            }
        }
        if androidV2["remote_notification"] != nil, androidV2["background_sync"] != nil {
            reader.note(["android_v2"], .sentence("has remote_notification and background_sync; keep one of them"))
        }
    }

    private func checkApple(_ reader: inout ContentReader) {
        guard !apns.isEmpty else { return }
        let aps = aps
        let path = ["apns", "payload", "aps"]
        for part in ["loc", "title-loc", "subtitle-loc"] where aps["alert"]?[part + "-args"] != nil && aps["alert"]?[part + "-key"] == nil {
            reader.note(path + ["alert", part + "-args"], .sentence("fills in the text that \(part)-key names; write \(part)-key too"))
        }
        let headers = apnsHeaders
        let headerPath = ["apns", "headers"]
        if let id = headers["apns-collapse-id"]?.stringValue, id.utf8.count > 64 {
            reader.note(headerPath + ["apns-collapse-id"], .sentence("is longer than 64 bytes"))
        }
        if let time = headers["apns-expiration"]?.stringValue, !reader.isTagged(time), !ContentText.isDigits(time) {
            reader.note(headerPath + ["apns-expiration"], .sentence("expected seconds since 1970, such as \"1767920400\""))
        }
        let type = headers["apns-push-type"]?.stringValue.flatMap(APNsPushType.init)
        let isVisible = ["alert", "badge", "sound"].contains { aps[$0] != nil }
        if type == .background {
            if headers["apns-priority"]?.stringValue == "10" {
                reader.note(headerPath + ["apns-priority"], .sentence("APNs refuses background pushes with 10; write \"5\""))
            }
            if isVisible {
                reader.note(headerPath + ["apns-push-type"], .sentence("a background push has no alert, badge or sound; write alert"))
            }
        }
        checkActivity(aps, type: type, &reader)
        if !reader.allowsTags || aps["relevance-score"]?.stringValue == nil { checkRelevance(aps, type: type, &reader) }
    }

    private func checkRelevance(_ aps: [String: JSONValue], type: APNsPushType?, _ reader: inout ContentReader) {
        let shape = ContentShape.number(0...1)
        // Live Activities are ranked by numbers of any size.
        guard let score = aps["relevance-score"], aps["event"] == nil, type != .liveactivity else { return }
        _ = reader.read(score, shape, at: ["apns", "relevance-score"])
    }

    private func checkActivity(_ aps: [String: JSONValue], type: APNsPushType?, _ reader: inout ContentReader) {
        let path = ["apns", "payload", "aps"]
        guard let event = aps["event"]?.stringValue else {
            for name in ContentSchema.activity.names where aps[name] != nil {
                reader.note(path + [name], .sentence("belongs to a Live Activity; write event: start, update or end too"))
            }
            if type == .liveactivity { reader.note(path, .sentence("a Live Activity has an event; write start, update or end")) }
            return
        }
        if let type, type != .liveactivity {
            reader.note(["apns", "headers", "apns-push-type"], .sentence("the payload is a Live Activity's; write liveactivity"))
        }
        if event != "end", aps["content-state"] == nil {
            reader.note(path, .sentence("a Live Activity's \(event) has a content-state; write it"))
        }
        let hasAttributes = aps["attributes-type"] != nil && aps["attributes"] != nil
        if event == "start", !hasAttributes {
            reader.note(path, .sentence("a Live Activity's start has attributes-type and attributes; write both"))
        }
        if event != "start", aps["attributes-type"] != nil || aps["attributes"] != nil, !reader.isTagged(event) {
            reader.note(path, .sentence("attributes-type and attributes belong to a Live Activity's start; remove them"))
        }
    }
}

extension ContentReader {
    /// Whether the text has tags that are still to be filled in.
    func isTagged(_ text: String) -> Bool { allowsTags && text.contains("{{") }
}

extension JSONValue {
    /// Objects are merged member by member; any other value is replaced by the particular one.
    func merged(under particular: JSONValue) -> JSONValue {
        guard let own = objectValue, let other = particular.objectValue else { return particular }
        return .object(own.merging(other) { $0.merged(under: $1) })
    }
}
