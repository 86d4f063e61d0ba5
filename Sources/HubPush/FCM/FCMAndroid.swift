internal import HubCore
internal import HubDefinitions
internal import HubDelivery

/// FCM's AndroidConfig and AndroidConfigV2 of a notification.
struct FCMAndroid {
    private var config: [String: JSONValue]
    private var notification: [String: JSONValue]
    /// Whether FCM's SDK shows the block's notification.
    private let isShown: Bool
    let isV2: Bool

    /// Members of AndroidConfig. Other members, as older versions stored them, belong to the notification.
    private static let configKeys: Set<String> = [
        "priority", "ttl", "collapse_key", "restricted_package_name", "data", "fcm_options", "direct_boot_ok", "bandwidth_constrained_ok",
        "restricted_satellite_ok",
    ]

    /// - Parameters:
    ///   - data: the message's own data, as strings.
    ///   - now: milliseconds since 1970.
    init(_ message: PushMessage, data: [String: JSONValue], now: Int64) throws(PayloadFault) {
        isV2 = !message.androidV2.isEmpty
        isShown = message.kind == .alert && message.content != .data
        config = [:]
        notification = [:]
        if isV2 {
            config = message.androidV2.filter { $0.value != .null }
            notification = config["remote_notification"]?["notification"]?.objectValue ?? [:]
        } else {
            for (key, value) in message.android where value != .null {
                if key == "notification", let members = value.objectValue {
                    notification.merge(members) { flat, _ in flat }
                } else if Self.configKeys.contains(key) {
                    config[key] = value
                } else {
                    notification[key] = value
                }
            }
            // High priority is for visible notifications: FCM lowers apps that use it for silent ones.
            let priority = config["priority"]?.stringValue?.uppercased()
            config["priority"] = .string(message.kind == .alert ? priority ?? "HIGH" : "NORMAL")
        }
        config["ttl"] = .string("\(message.timeToLive(asked: config["ttl"], now: now))s")
        if let own = config["data"] {
            guard let members = own.objectValue else { throw PayloadFault(reason: "the definition's android.data is not a map") }
            // In FCM this block's data replaces the message's data, ids included, so they are merged here.
            config["data"] = .object(
                data.merging(try FCMPayload.stringified(members)) { _, own in own }.merging(
                    try FCMPayload.stringified(message.identityMembers)
                ) {
                    _, identity in identity
                })
        }
        if isShown {
            // Shown notifications are replaced by tag; FCM ignores their collapse_key.
            if let group = message.collapseKey, notification["tag"] == nil { notification["tag"] = .string(group) }
            if let display = notification["notification_priority"]?.stringValue?.uppercased() {
                notification["notification_priority"] = .string(display.hasPrefix("PRIORITY_") ? display : "PRIORITY_" + display)
            }
        } else if let group = message.collapseKey, config["collapse_key"] == nil {
            config["collapse_key"] = .string(group)
        }
        if isV2, !isShown, config["remote_notification"] == nil { config["background_sync"] = [:] }
    }

    var titles: [String] { isShown ? [notification["title"]?.stringValue].compactMap { $0 } : [] }
    var bodies: [String] { isShown ? [notification["body"]?.stringValue].compactMap { $0 } : [] }

    /// The block with cut texts.
    func members(_ cut: TextCut) -> JSONValue {
        var config = config
        var notification = isShown ? notification : [:]
        if let title = notification["title"]?.stringValue { notification["title"] = .string(cut.title(title)) }
        if let body = notification["body"]?.stringValue { notification["body"] = .string(cut.body(body)) }
        if isV2, isShown {
            var remote = config["remote_notification"]?.objectValue ?? [:]
            if !notification.isEmpty { remote["notification"] = .object(notification) }
            config["remote_notification"] = .object(remote)
        } else if !isV2, !notification.isEmpty {
            config["notification"] = .object(notification)
        }
        return .object(config)
    }
}

extension PushMessage {
    /// Whole seconds until the notification expires, or the content's own value if smaller.
    func timeToLive(asked: JSONValue?, now: Int64) -> Int64 {
        let remaining = min(FCMPayload.ttlSecondsMax, (expiresAt - now) / 1000)
        let text = asked?.stringValue.map { ($0.hasSuffix("s") ? $0.dropLast() : $0[...]).prefix { $0 != "." } }
        guard let seconds = asked?.intValue ?? text.flatMap({ Int64($0) }), seconds >= 0 else { return remaining }
        return min(remaining, seconds)
    }

    /// Id for Android's `notify()`. Equal for a group, so that a newer notification replaces the older; otherwise unique.
    var androidNotificationID: Int32 { CollapseKey.number(group.flatMap { $0.isEmpty ? nil : $0 } ?? nid) }
}
