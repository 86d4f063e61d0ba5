internal import HubCore

/// Options of FCM's API that was switched off in 2024 (`sendToDevice`, `/fcm/send`), found next to a message.
///
/// Options of `sendToDevice` that have one meaning in v1 are translated. All others are mistakes that name the present option.
struct FormerOptions {
    private var isUrgent: Bool?
    private var isContentAvailable = false
    private var isMutable = false

    private static let replacements = [
        "registration_ids": "write to: {\"tokens\": […]}", "registrationTokens": "write to: {\"tokens\": […]}",
        "tokens": "write to: {\"tokens\": […]}", "token": "write to: {\"tokens\": [\"…\"]}",
        "topic": "write to: {\"topic\": \"…\"}", "condition": "write to: {\"condition\": \"…\"}",
        "to": "write to: with users, tokens, topic or condition", "content_available": "write apns: {\"content-available\": 1}",
        "mutable_content": "write apns: {\"mutable-content\": 1}", "time_to_live": "write android: {\"ttl\": \"600s\"}",
        "timeToLive": "write android: {\"ttl\": \"600s\"}", "delay_while_idle": "write android: {\"priority\": \"normal\"}",
        "delayWhileIdle": "write android: {\"priority\": \"normal\"}",
        "dry_run": "FCM's v1 has validate_only, which `tandem check --live` uses",
        "dryRun": "FCM's v1 has validate_only, which `tandem check --live` uses",
        "collapse_key": "write android: {\"collapse_key\": \"…\"}", "collapseKey": "write android: {\"collapse_key\": \"…\"}",
        "restricted_package_name": "write android: {\"restricted_package_name\": \"…\"}",
        "restrictedPackageName": "write android: {\"restricted_package_name\": \"…\"}",
    ]

    /// Takes a member of the former API, or notes the mistake in it.
    /// - Returns: whether the member belongs to that API.
    mutating func take(_ key: String, _ value: JSONValue, _ reader: inout ContentReader) -> Bool {
        switch key {
        case "priority":
            switch value.stringValue?.lowercased() {
            case "high": isUrgent = true
            case "normal": isUrgent = false
            default: reader.note([key], .expected("high or normal"), found: value)
            }
        case "contentAvailable", "mutableContent":
            guard let flag = value.boolValue else {
                reader.note([key], .expected("true or false"), found: value)
                return true
            }
            if key == "contentAvailable" { isContentAvailable = flag } else { isMutable = flag }
        default:
            guard let replacement = Self.replacements[key] else { return false }
            reader.note([key], .sentence("is a name of FCM's old API, which is gone: \(replacement)"))
        }
        return true
    }

    func apply(to content: inout NotificationContent) {
        if let isUrgent {
            // Silent content is never urgent.
            if content.android["priority"] == nil { content.android["priority"] = isUrgent && content.isVisible ? "HIGH" : "NORMAL" }
            if content.isVisible, content.apnsHeaders["apns-priority"] == nil {
                content.apnsHeaders["apns-priority"] = isUrgent ? "10" : "5"
            }
        }
        if isContentAvailable, content.apns["content-available"] == nil { content.apns["content-available"] = 1 }
        if isMutable, content.isVisible, content.apns["mutable-content"] == nil { content.apns["mutable-content"] = 1 }
    }
}
