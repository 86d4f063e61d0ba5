import HubCore

/// Checks a payload's `aps` (docs/protocol.md, 9.3, 9.4 and 9.7); pure functions.
///
/// Apple ignores most of it in silence, so an encoder's mistake would show nowhere: here each is refused.
enum APNsPayloadCheck {
    static let visible = ["alert", "badge", "sound"]
    private static let activity = [
        "event", "timestamp", "content-state", "stale-date", "dismissal-date", "attributes-type", "attributes",
    ]
    private static let alertTexts = [
        "title", "subtitle", "body", "launch-image", "title-loc-key", "subtitle-loc-key", "loc-key", "action-loc-key",
    ]
    private static let alertLists = ["title-loc-args": "title-loc-key", "subtitle-loc-args": "subtitle-loc-key", "loc-args": "loc-key"]

    /// The first error, with the member's name; nil if there is none.
    static func problem(_ aps: [String: JSONValue], pushType: String?) -> String? {
        for (name, value) in aps.sorted(by: { $0.key < $1.key }) {
            if let problem = problem(name, value, pushType: pushType) { return "aps.\(name): \(problem)" }
        }
        if aps["mutable-content"] == 1, aps["alert"] == nil { return "aps.mutable-content: needs an alert" }
        return pushType == "liveactivity" ? activityProblem(aps) : nil
    }

    private static func problem(_ name: String, _ value: JSONValue, pushType: String?) -> String? {
        switch name {
        case "alert": return value.stringValue == nil ? value.objectValue.map(alertProblem) ?? "neither text nor object" : nil
        case "badge": return value.intValue.map { $0 >= 0 } == true ? nil : "not a whole number from 0"
        case "sound": return value.stringValue == nil ? value.objectValue.map(soundProblem) ?? "neither text nor object" : nil
        case "thread-id", "category", "target-content-id", "filter-criteria": return value.stringValue == nil ? "not text" : nil
        case "content-available", "mutable-content": return value == 1 || value == 0 ? nil : "not 0 or 1"
        case "interruption-level":
            return ["passive", "active", "time-sensitive", "critical"].contains(value.stringValue ?? "") ? nil : "not a level"
        case "relevance-score":
            guard let score = number(value) else { return "not a number" }
            return pushType == "liveactivity" || (0...1).contains(score) ? nil : "not from 0 to 1"
        case _ where activity.contains(name):
            guard pushType == "liveactivity" else { return "belongs to the push type liveactivity" }
            return activityMemberProblem(name, value)
        default: return "Apple knows no such member"
        }
    }

    private static func alertProblem(_ alert: [String: JSONValue]) -> String? {
        for (name, value) in alert.sorted(by: { $0.key < $1.key }) {
            if alertTexts.contains(name) {
                if value.stringValue == nil { return "\(name) is not text" }
            } else if let key = alertLists[name] {
                guard value.arrayValue?.allSatisfy({ $0.stringValue != nil }) == true else { return "\(name) is not a list of texts" }
                if alert[key] == nil { return "\(name) without \(key)" }
            } else {
                return "Apple knows no member \(name)"
            }
        }
        return nil
    }

    private static func soundProblem(_ sound: [String: JSONValue]) -> String? {
        for (name, value) in sound {
            switch name {
            case "critical": if value != 1 && value != 0 { return "critical is not 0 or 1" }
            case "name": if value.stringValue == nil { return "name is not text" }
            case "volume": if number(value).map({ !(0...1).contains($0) }) ?? true { return "volume is not from 0 to 1" }
            default: return "Apple knows no member \(name)"
            }
        }
        return sound["name"] == nil ? "has no name" : nil
    }

    private static func activityMemberProblem(_ name: String, _ value: JSONValue) -> String? {
        switch name {
        case "event": ["start", "update", "end"].contains(value.stringValue ?? "") ? nil : "not start, update or end"
        case "timestamp", "stale-date", "dismissal-date": value.intValue == nil ? "not seconds since 1970" : nil
        case "attributes-type": value.stringValue == nil ? "not text" : nil
        default: value.objectValue == nil ? "not an object" : nil
        }
    }

    private static func activityProblem(_ aps: [String: JSONValue]) -> String? {
        guard let event = aps["event"]?.stringValue else { return "aps.event: missing" }
        if aps["timestamp"] == nil { return "aps.timestamp: missing" }
        if event != "end", aps["content-state"] == nil { return "aps.content-state: missing" }
        if event == "start", aps["attributes-type"] == nil || aps["attributes"] == nil { return "aps.attributes: missing" }
        return nil
    }

    private static func number(_ value: JSONValue) -> Double? {
        switch value {
        case .int(let number): Double(number)
        case .double(let number): number
        default: nil
        }
    }
}
