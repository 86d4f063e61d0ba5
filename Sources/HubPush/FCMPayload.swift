internal import HubCore
internal import HubDelivery

/// A notification in FCM's form: the body of `messages:send` (FCM HTTP v1, resource `projects.messages`).
struct FCMPayload: Equatable {
    /// FCM's limit on notification, data and platform block together; which parts count exactly is not published, so
    /// all of the message but its token does.
    static let bytesMax = 4096
    /// Four weeks, FCM's longest time to live.
    static let ttlSecondsMax: Int64 = 2_419_200

    var body: [UInt8]

    /// - Parameter now: milliseconds since 1970.
    init(_ message: PushMessage, target: PushTarget, now: Int64) throws(PayloadFault) {
        guard message.expiresAt > now else { throw PayloadFault(reason: "expired before it was sent") }
        let data = try Self.stringified(message.data.merging(message.identityMembers) { _, identity in identity })
        let android = try Self.android(message, data: data, now: now)
        // What APNs will get from FCM: `aps` with the data beside it.
        let apnsRoot = target.platform == .ios ? try APNsPayload.rootMembers(message) : [:]

        func members(_ title: String?, _ body: String?) -> [String: JSONValue] {
            var members: [String: JSONValue] = ["data": .object(data), "android": .object(android)]
            if message.kind == .alert {
                var notification: [String: JSONValue] = [:]
                if let title { notification["title"] = .string(title) }
                if let body { notification["body"] = .string(body) }
                if let image = message.image { notification["image"] = .string(image) }
                members["notification"] = .object(notification)
            }
            if target.platform == .ios { members["apns"] = Self.apns(message, title: title, body: body) }
            return members
        }
        func size(_ title: String?, _ body: String?) -> Int {
            let whole = JSONValue.object(members(title, body)).serialized().count
            guard target.platform == .ios else { return whole }
            var root = apnsRoot
            root["aps"] = APSMembers.make(message, title: title, body: body)
            return max(whole, JSONValue.object(root).serialized().count)
        }
        guard let fitting = PayloadFit.fit(title: message.title, body: message.body, bytesMax: Self.bytesMax, size: size) else {
            throw PayloadFault(
                reason: "larger than FCM's \(Self.bytesMax) bytes even without its text; shorten the definition's data")
        }
        var sent = members(fitting.title, fitting.body)
        sent["token"] = .string(target.token)
        body = JSONValue.object(["message": .object(sent)]).serialized()
    }

    // MARK: Data

    /// FCM's data is a map of strings: a number in it is refused with 400.
    static func stringified(_ data: [String: JSONValue]) throws(PayloadFault) -> [String: JSONValue] {
        var strings: [String: JSONValue] = [:]
        for (key, value) in data {
            // Two of Google's pages disagree about the prefixes; both readings are refused here.
            if key.isEmpty || key == "from" || key == "message_type" || key.hasPrefix("google") || key.hasPrefix("gcm") {
                throw PayloadFault(
                    reason: "the data has a member named \"\(key)\", which FCM reserves; rename it in the definition")
            }
            switch value {
            case .null: break
            case .string: strings[key] = value
            case .bool, .int, .double, .array, .object: strings[key] = .string(value.text)
            }
        }
        return strings
    }

    // MARK: Platform blocks

    /// The members of AndroidNotification; every other key of a definition's block belongs to AndroidConfig itself.
    private static let notificationKeys: Set<String> = [
        "title", "body", "icon", "color", "sound", "tag", "click_action", "body_loc_key", "body_loc_args", "title_loc_key",
        "title_loc_args", "channel_id", "ticker", "sticky", "event_time", "local_only", "notification_priority",
        "default_sound",
        "default_vibrate_timings", "default_light_settings", "vibrate_timings", "visibility", "notification_count",
        "light_settings", "image", "bypass_proxy_notification", "proxy",
    ]

    private static func android(
        _ message: PushMessage, data: [String: JSONValue], now: Int64
    ) throws(PayloadFault) -> [String: JSONValue] {
        var config: [String: JSONValue] = [:]
        var notification: [String: JSONValue] = [:]
        for (key, value) in message.android where value != .null {
            if key == "notification", let members = value.objectValue {
                notification.merge(members) { flat, _ in flat }
            } else if notificationKeys.contains(key) {
                notification[key] = value
            } else {
                config[key] = value
            }
        }
        // High priority is for what ends in a visible notification: FCM lowers apps that use it for silent ones.
        let priority = config["priority"]?.stringValue?.uppercased()
        config["priority"] = .string(message.kind == .alert ? priority ?? "HIGH" : "NORMAL")
        config["ttl"] = .string("\(timeToLive(message, asked: config["ttl"], now: now))s")
        if let own = config["data"] {
            guard let members = own.objectValue else {
                throw PayloadFault(reason: "the definition's android.data is not a map")
            }
            // FCM lets this block replace the message's data instead of adding to it, ids included.
            config["data"] = .object(
                data.merging(try stringified(members)) { _, own in own }.merging(
                    try stringified(message.identityMembers)
                ) { _, identity in identity })
        }
        guard message.kind == .alert else {
            if let group = message.collapseKey, config["collapse_key"] == nil { config["collapse_key"] = .string(group) }
            return config
        }
        // Shown notifications are replaced by tag; FCM ignores their collapse_key.
        if let group = message.collapseKey { notification["tag"] = .string(group) }
        if let display = notification["notification_priority"]?.stringValue?.uppercased() {
            notification["notification_priority"] = .string(display.hasPrefix("PRIORITY_") ? display : "PRIORITY_" + display)
        }
        if !notification.isEmpty { config["notification"] = .object(notification) }
        return config
    }

    /// Whole seconds until the notification expires, or what the definition's block asks for if that is less.
    private static func timeToLive(_ message: PushMessage, asked: JSONValue?, now: Int64) -> Int64 {
        let remaining = min(ttlSecondsMax, (message.expiresAt - now) / 1000)
        let text = asked?.stringValue.map { $0.hasSuffix("s") ? String($0.dropLast()) : $0 }
        guard let seconds = asked?.intValue ?? text.flatMap({ Int64($0) }), seconds >= 0 else { return remaining }
        return min(remaining, seconds)
    }

    private static func apns(_ message: PushMessage, title: String?, body: String?) -> JSONValue {
        let headers = APNsPayload.deliveryHeaders(message).mapValues { JSONValue.string($0) }
        var block: [String: JSONValue] = [
            "headers": .object(headers), "payload": ["aps": APSMembers.make(message, title: title, body: body)],
        ]
        if message.kind == .alert, let image = message.image { block["fcm_options"] = ["image": .string(image)] }
        return .object(block)
    }
}
