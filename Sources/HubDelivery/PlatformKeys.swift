internal import HubCore

/// What a definition's `apns` and `android` blocks may contain: strict, because a gateway ignores what it does not know.
struct PlatformKeys {
    let known: [String]
    /// A map inside the block with known members of its own. `isFlattened`: they count as the block's.
    let inner: (key: String, known: [String], isFlattened: Bool)
    private let rules: [String: Rule]

    private enum Rule {
        case text, texts, flag, zeroOrOne, count
        case words([String])
        case colour, textOrMap, fraction
    }

    /// Members of `aps` and of its `alert` (Apple, "Generating a remote notification"). Title and body of the alert are the
    /// notification's.
    static let apns = PlatformKeys(
        known: [
            "sound", "badge", "thread-id", "category", "content-available", "mutable-content", "target-content-id",
            "interruption-level", "relevance-score", "filter-criteria", "alert",
        ],
        inner: (
            "alert",
            [
                "subtitle", "launch-image", "title-loc-key", "title-loc-args", "subtitle-loc-key", "subtitle-loc-args", "loc-key",
                "loc-args",
            ], isFlattened: false
        ),
        rules: [
            "sound": .textOrMap, "badge": .count, "thread-id": .text, "category": .text, "content-available": .zeroOrOne,
            "mutable-content": .zeroOrOne, "target-content-id": .text,
            "interruption-level": .words(["passive", "active", "time-sensitive", "critical"]), "relevance-score": .fraction,
            "filter-criteria": .text, "subtitle": .text, "launch-image": .text, "title-loc-key": .text, "title-loc-args": .texts,
            "subtitle-loc-key": .text, "subtitle-loc-args": .texts, "loc-key": .text, "loc-args": .texts,
        ])

    /// Members of FCM's AndroidConfig and AndroidNotification. `ttl`, `tag` and `collapse_key` are made from the event's ttl and
    /// group, title and body from its notification.
    static let android: PlatformKeys = {
        let notification = [
            "channel_id", "sound", "icon", "color", "click_action", "ticker", "sticky", "event_time", "local_only",
            "notification_priority", "visibility", "notification_count", "default_sound", "default_vibrate_timings",
            "default_light_settings", "vibrate_timings", "light_settings", "image", "title_loc_key", "title_loc_args",
            "body_loc_key",
            "body_loc_args", "bypass_proxy_notification", "proxy",
        ]
        return PlatformKeys(
            known: [
                "priority", "restricted_package_name", "direct_boot_ok", "bandwidth_constrained_ok", "restricted_satellite_ok",
                "notification",
            ] + notification,
            inner: ("notification", notification, isFlattened: true),
            rules: [
                "priority": .words(["high", "normal", "HIGH", "NORMAL"]), "restricted_package_name": .text,
                "direct_boot_ok": .flag,
                "bandwidth_constrained_ok": .flag, "restricted_satellite_ok": .flag, "channel_id": .text, "sound": .text,
                "icon": .text,
                "color": .colour, "click_action": .text, "ticker": .text, "sticky": .flag, "event_time": .text,
                "local_only": .flag,
                "notification_priority": .words(["MIN", "LOW", "DEFAULT", "HIGH", "MAX"].map { "PRIORITY_\($0)" }),
                "visibility": .words(["PRIVATE", "PUBLIC", "SECRET"]), "notification_count": .count, "default_sound": .flag,
                "default_vibrate_timings": .flag, "default_light_settings": .flag, "vibrate_timings": .texts, "image": .text,
                "title_loc_key": .text, "title_loc_args": .texts, "body_loc_key": .text, "body_loc_args": .texts,
                "bypass_proxy_notification": .flag, "proxy": .words(["ALLOW", "DENY", "IF_PRIORITY_LOWERED"]),
            ])
    }()

    /// What was expected, when the value cannot be right.
    func problem(_ key: String, _ value: JSONValue) -> String? {
        switch rules[key] {
        case .text?: return value.stringValue == nil ? "expected text" : nil
        case .flag?: return value.boolValue == nil ? "expected true or false" : nil
        case .texts?:
            return value.arrayValue?.allSatisfy { $0.stringValue != nil } == true ? nil : "expected a list of texts"
        case .zeroOrOne?:
            return value == 0 || value == 1 || value.boolValue != nil ? nil : "expected 0 or 1"
        case .count?: return value.intValue.map { $0 >= 0 } == true ? nil : "expected a whole number from 0"
        case .textOrMap?: return value.stringValue == nil && value.objectValue == nil ? "expected text or a map" : nil
        case .fraction?:
            if case .double(let number) = value, (0...1).contains(number) { return nil }
            return value == 0 || value == 1 ? nil : "expected a number from 0 to 1"
        case .words(let words)?:
            guard let text = value.stringValue, words.contains(text) else {
                return "expected one of \(words.joined(separator: ", "))"
            }
            return nil
        case .colour?:
            guard let text = value.stringValue, text.first == "#", text.utf8.count == 7, text.dropFirst().allSatisfy(\.isHexDigit)
            else {
                return "expected a colour such as \"#4CAF50\""
            }
            return nil
        case nil: return nil
        }
    }

    /// Why FCM or the hub would not deliver such a member of `data`; nil when they do.
    static func reservedReason(dataKey key: String) -> String? {
        if key.isEmpty { return "a key needs a name" }
        if ["from", "message_type", "collapse_key"].contains(key) || key.hasPrefix("google") || key.hasPrefix("gcm") {
            return "FCM keeps this name for itself; rename it"
        }
        if key == "aps" { return "APNs keeps this name for itself; use the apns: block" }
        if ["nid", "event_id", "seq", "ts"].contains(key) { return "the hub adds a member of this name itself; rename it" }
        return nil
    }
}
