import HubCore

/// FCM's checks of a message that has the right fields (docs/protocol.md, 8.2 to 8.4); pure functions.
enum FCMMessageCheck {
    static let payloadBytesMax = 4096
    static let topicPayloadBytesMax = 2048
    static let timeToLiveSecondsMax: Int64 = 2_419_200
    static let conditionTopicsMax = 5

    /// A message that passed the checks: its one target, and whether it is only validated.
    struct Message: Equatable {
        var target: String
        /// The form used by records and faults: the token or FID itself, `topic:NAME` or `condition:TEXT`.
        var token: String
        var isValidateOnly: Bool
    }

    static func check(_ body: JSONValue) throws(FCMError) -> Message {
        guard body.objectValue != nil else {
            throw .malformed(field: "", "Invalid JSON payload received. Root element must be a message.")
        }
        try FCMSchema.request.check(body, at: "")
        let request = canonical(body)
        guard let message = request["message"], message.objectValue != nil else {
            throw .invalid(field: "message", "Message is not set.")
        }
        let set = FCMSchema.targets.filter { message[$0] != nil }
        guard set.count <= 1 else {
            throw .malformed(
                field: "message",
                "Invalid value at 'message' (oneof), oneof field 'target' is already set. Cannot set '\(set[1])'")
        }
        guard let target = set.first, let value = message[target]?.stringValue, !value.isEmpty else {
            throw .invalid(field: "message.token", "Recipient of the message is not set.")
        }
        try checkTarget(target, value)
        try checkData(message["data"], at: "message.data")
        try checkAndroid(message)
        try checkApple(message)
        try checkOthers(message)
        try checkSize(message, target: target)
        let isDevice = target == "token" || target == "fid"
        return Message(
            target: target, token: isDevice ? value : "\(target):\(value)",
            isValidateOnly: request["validate_only"]?.boolValue ?? false)
    }

    /// Converts schema keys to snake_case and drops nulls; free maps (data, headers, payload) keep their keys.
    private static func canonical(_ value: JSONValue, isFree: Bool = false) -> JSONValue {
        guard case .object(let members) = value else { return value }
        var output: [String: JSONValue] = [:]
        for (key, member) in members where member != .null || isFree {
            let name = isFree ? key : FCMField.snakeCase(key)
            output[name] = isFree ? member : canonical(member, isFree: ["data", "headers", "payload"].contains(name))
        }
        return .object(output)
    }

    private static func checkTarget(_ target: String, _ value: String) throws(FCMError) {
        switch target {
        case "topic":
            guard value.wholeMatch(of: /[a-zA-Z0-9\-_.~%]{1,900}/) != nil else {
                throw .invalid(field: "message.topic", "Invalid topic name: give it without /topics/, as [a-zA-Z0-9-_.~%]{1,900}.")
            }
        case "condition":
            let topics = value.matches(of: /'[a-zA-Z0-9\-_.~%]{1,900}' in topics/).count
            let rest = value.replacing(/'[a-zA-Z0-9\-_.~%]{1,900}' in topics/, with: "t")
            guard (1...conditionTopicsMax).contains(topics), isBalanced(rest),
                rest.wholeMatch(of: /[!(\s]*t[)\s]*((&&|\|\|)[!(\s]*t[)\s]*)*/) != nil
            else { throw .invalid(field: "message.condition", "Invalid condition: one to five topics joined by && and ||.") }
        default:
            let isPlausible =
                value.utf8.count <= SimulatorLimits.tokenBytesMax && value.utf8.allSatisfy { (0x21...0x7E).contains($0) }
            // An APNs device token is the commonest mistake, and no FCM token has its form.
            guard isPlausible, value.wholeMatch(of: /[0-9a-fA-F]{64}/) == nil else { throw .invalidToken }
        }
    }

    private static func isBalanced(_ text: String) -> Bool {
        var depth = 0
        for byte in text.utf8 {
            if byte == UInt8(ascii: "(") { depth += 1 }
            if byte == UInt8(ascii: ")") { depth -= 1 }
            if depth < 0 { return false }
        }
        return depth == 0
    }

    private static func checkData(_ data: JSONValue?, at path: String) throws(FCMError) {
        for key in data?.objectValue?.keys.sorted() ?? [] {
            let isReserved =
                ["from", "message_type", "gcm"].contains(key) || key.hasPrefix("google") || key.hasPrefix("gcm.")
            if isReserved { throw .invalid(field: path, "Invalid data payload key: \(key)") }
            if key.isEmpty { throw .invalid(field: path, "Invalid data payload key: it is empty") }
        }
    }

    private static func checkAndroid(_ message: JSONValue) throws(FCMError) {
        if message["android"] != nil, message["android_v2"] != nil {
            throw .invalid(field: "message.android_v2", "Only one of android and android_v2 may be set.")
        }
        for block in ["android", "android_v2"] {
            guard let android = message[block] else { continue }
            try checkData(android["data"], at: "message.\(block).data")
            if let ttl = android["ttl"]?.stringValue.flatMap(FCMField.seconds(ofDuration:)),
                !(0...timeToLiveSecondsMax).contains(ttl)
            {
                throw .invalid(field: "message.\(block).ttl", "Invalid ttl: 0s to \(timeToLiveSecondsMax)s.")
            }
            let notification = android["notification"] ?? android["remote_notification"]?["notification"]
            if let color = notification?["color"]?.stringValue, color.wholeMatch(of: /#[0-9a-fA-F]{6}/) == nil {
                throw .invalid(field: "message.\(block).notification.color", "Invalid color: expected #rrggbb.")
            }
        }
    }

    private static func checkApple(_ message: JSONValue) throws(FCMError) {
        guard let apns = message["apns"] else { return }
        let headers = apns["headers"]?.objectValue ?? [:]
        let aps = apns["payload"]?["aps"]
        let isVisible = message["notification"] != nil || ["alert", "badge", "sound"].contains { aps?[$0] != nil }
        let priority = headers.first { $0.key.lowercased() == "apns-priority" }?.value.stringValue
        let pushType = headers.first { $0.key.lowercased() == "apns-push-type" }?.value.stringValue
        // A Live Activity without an alert is still shown.
        let isActivity = aps?["event"] != nil && pushType != "background"
        if priority == "10", !isVisible && !isActivity || pushType == "background" {
            throw .invalid(
                field: "message.apns.headers", "A background message cannot have apns-priority 10; use 5.")
        }
        if let payload = apns["payload"], payload.serialized().count > APNsRequestCheck.payloadBytesMax {
            throw .invalid(field: "message.apns.payload", "APNs payload is too big: more than 4096 bytes.")
        }
    }

    private static func checkOthers(_ message: JSONValue) throws(FCMError) {
        try checkData(message["webpush"]?["data"], at: "message.webpush.data")
        if let link = message["webpush"]?["fcm_options"]?["link"]?.stringValue, !link.hasPrefix("https://") {
            throw .invalid(field: "message.webpush.fcm_options.link", "The link must be an https URL.")
        }
        for block in [message, message["android"], message["android_v2"], message["apns"], message["webpush"]] {
            if let label = block?["fcm_options"]?["analytics_label"]?.stringValue,
                label.wholeMatch(of: /[a-zA-Z0-9\-_.~%]{1,50}/) == nil
            {
                throw .invalid(field: "message.fcm_options.analytics_label", "Invalid analytics label.")
            }
        }
    }

    /// Limits the keys and values that reach a device; FCM's page does not say more precisely what counts.
    private static func checkSize(_ message: JSONValue, target: String) throws(FCMError) {
        let bytesMax = target == "topic" || target == "condition" ? topicPayloadBytesMax : payloadBytesMax
        // A platform's data replaces the common data.
        for block in [nil, "android", "android_v2", "webpush"] as [String?] {
            let platform = block.flatMap { message[$0] }
            if block != nil, platform == nil { continue }
            let parts = [platform?["data"] ?? message["data"], message["notification"], platform?["notification"]]
            guard parts.reduce(0, { $0 + bytes(of: $1) }) <= bytesMax else {
                throw .invalid(field: "message", "Message too big: its payload has more than \(bytesMax) bytes.")
            }
        }
    }

    private static func bytes(of value: JSONValue?) -> Int {
        switch value {
        case .string(let text): text.utf8.count
        case .array(let values): values.reduce(0) { $0 + bytes(of: $1) }
        case .object(let members): members.reduce(0) { $0 + $1.key.utf8.count + bytes(of: $1.value) }
        case nil, .null: 0
        case .some(let other): other.serialized().count
        }
    }
}
