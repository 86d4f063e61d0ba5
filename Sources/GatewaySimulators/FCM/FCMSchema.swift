import HubCore

/// The v1 message schema as data (docs/protocol.md, 8.2), and the proto3 JSON rules that read it.
indirect enum FCMField: Sendable {
    case string, bool, int32, number
    /// `"600s"`, up to nine fractional digits.
    case duration
    /// RFC 3339.
    case timestamp
    case enumeration([String])
    case stringMap
    /// google.protobuf.Struct: any JSON object.
    case anyObject
    case list(FCMField)
    case object([String: FCMField])

    /// Checks a value against the field, with the front end's messages.
    /// - Parameter path: for example `message.android.ttl`.
    func check(_ value: JSONValue, at path: String) throws(FCMError) {
        switch (self, value) {
        // proto3 JSON reads null as "not set".
        case (_, .null), (.string, .string), (.bool, .bool), (.anyObject, .object), (.number, .int), (.number, .double): break
        case (.int32, .int(let number)) where Int32(exactly: number) != nil: break
        case (.int32, .string(let text)) where Int32(text) != nil: break
        case (.duration, .string(let text)):
            guard Self.seconds(ofDuration: text) != nil else { throw Self.mismatch(path, typeName) }
        case (.timestamp, .string(let text)):
            guard Self.isTimestamp(text) else { throw Self.mismatch(path, typeName) }
        case (.enumeration(let names), .string(let name)):
            guard names.contains(name.uppercased()) else { throw Self.mismatch(path, "TYPE_ENUM") }
        case (.stringMap, .object(let members)):
            for (index, key) in members.keys.sorted().enumerated() where members[key]?.stringValue == nil {
                throw Self.mismatch("\(path)[\(index)].value", "TYPE_STRING")
            }
        case (.list(let element), .array(let values)):
            for (index, value) in values.enumerated() {
                if value == .null { throw Self.mismatch("\(path)[\(index)]", "a value") }
                try element.check(value, at: "\(path)[\(index)]")
            }
        case (.object(let fields), .object(let members)):
            for key in members.keys.sorted() {
                let name = Self.snakeCase(key)
                guard let field = fields[name] else {
                    throw .malformed(
                        field: path, "Invalid JSON payload received. Unknown name \"\(key)\" at '\(path)': Cannot find field.")
                }
                try field.check(members[key, default: .null], at: path.isEmpty ? name : "\(path).\(name)")
            }
        default: throw Self.mismatch(path, typeName)
        }
    }

    private var typeName: String {
        switch self {
        case .string: "TYPE_STRING"
        case .bool: "TYPE_BOOL"
        case .int32: "TYPE_INT32"
        case .number: "TYPE_FLOAT"
        case .duration: "type.googleapis.com/google.protobuf.Duration"
        case .timestamp: "type.googleapis.com/google.protobuf.Timestamp"
        case .enumeration: "TYPE_ENUM"
        case .stringMap, .anyObject, .list, .object: "Map"
        }
    }

    private static func mismatch(_ path: String, _ type: String) -> FCMError {
        .malformed(field: path, "Invalid value at '\(path)' (\(type))")
    }

    /// Converts a key: requests may use snake_case or camelCase, and the schema has snake_case only.
    static func snakeCase(_ key: String) -> String {
        guard key.utf8.contains(where: { (0x41...0x5A).contains($0) }) else { return key }
        return key.reduce(into: "") { name, character in
            if character.isASCII, character.isUppercase { name += "_" + character.lowercased() } else { name.append(character) }
        }
    }

    /// The seconds of a Duration, without fractions; nil if the text is not a Duration.
    static func seconds(ofDuration text: String) -> Int64? {
        guard text.hasSuffix("s") else { return nil }
        let parts = text.dropLast().split(separator: ".", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), let seconds = Int64(parts[0]), !parts[0].hasPrefix("+") else { return nil }
        if parts.count == 2 {
            let isFraction = (1...9).contains(parts[1].utf8.count) && parts[1].utf8.allSatisfy { (0x30...0x39).contains($0) }
            guard isFraction else { return nil }
        }
        return seconds
    }

    private static func isTimestamp(_ text: String) -> Bool {
        let pattern = /\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})/
        return text.wholeMatch(of: pattern) != nil
    }
}

/// The fields of each message type, by name.
enum FCMSchema {
    static let request = FCMField.object(["validate_only": .bool, "message": .object(message)])

    static let targets = ["fid", "token", "topic", "condition"]

    private static let message: [String: FCMField] = [
        "name": .string, "fid": .string, "token": .string, "topic": .string, "condition": .string, "data": .stringMap,
        "notification": .object(["title": .string, "body": .string, "image": .string]), "android": .object(android),
        "android_v2": .object(androidV2), "apns": .object(apns), "webpush": .object(webpush), "fcm_options": analytics,
    ]

    private static let analytics = FCMField.object(["analytics_label": .string])

    private static let androidShared: [String: FCMField] = [
        "collapse_key": .string, "ttl": .duration, "restricted_package_name": .string, "data": .stringMap,
        "fcm_options": analytics, "direct_boot_ok": .bool, "bandwidth_constrained_ok": .bool, "restricted_satellite_ok": .bool,
    ]

    private static let android = androidShared.merging(
        [
            "priority": .enumeration(["NORMAL", "HIGH"]),
            "notification": .object(
                androidNotification.merging(
                    ["proxy": .enumeration(["PROXY_UNSPECIFIED", "ALLOW", "DENY", "IF_PRIORITY_LOWERED"])]) { $1 }),
        ]) { $1 }

    private static let androidV2 = androidShared.merging(
        [
            "remote_notification": .object([
                "notification": .object(androidNotification.merging(["id": .int32]) { $1 }), "mutable_content": .bool,
                "use_as_v1_data_message": .bool,
            ]),
            "background_sync": .object([:]),
        ]) { $1 }

    private static let androidNotification: [String: FCMField] = [
        "title": .string, "body": .string, "icon": .string, "color": .string, "sound": .string, "tag": .string,
        "click_action": .string, "body_loc_key": .string, "body_loc_args": .list(.string), "title_loc_key": .string,
        "title_loc_args": .list(.string), "channel_id": .string, "ticker": .string, "sticky": .bool, "event_time": .timestamp,
        "local_only": .bool,
        "notification_priority": .enumeration([
            "PRIORITY_UNSPECIFIED", "PRIORITY_MIN", "PRIORITY_LOW", "PRIORITY_DEFAULT", "PRIORITY_HIGH", "PRIORITY_MAX",
        ]),
        "default_sound": .bool, "default_vibrate_timings": .bool, "default_light_settings": .bool,
        "vibrate_timings": .list(.duration),
        "visibility": .enumeration(["VISIBILITY_UNSPECIFIED", "PRIVATE", "PUBLIC", "SECRET"]), "notification_count": .int32,
        "light_settings": .object([
            "color": .object(["red": .number, "green": .number, "blue": .number, "alpha": .number]),
            "light_on_duration": .duration, "light_off_duration": .duration,
        ]),
        "image": .string, "bypass_proxy_notification": .bool,
    ]

    private static let apns: [String: FCMField] = [
        "headers": .stringMap, "payload": .anyObject,
        "fcm_options": .object(["analytics_label": .string, "image": .string]), "live_activity_token": .string,
    ]

    private static let webpush: [String: FCMField] = [
        "headers": .stringMap, "data": .stringMap, "notification": .anyObject,
        "fcm_options": .object(["link": .string, "analytics_label": .string]),
    ]
}
