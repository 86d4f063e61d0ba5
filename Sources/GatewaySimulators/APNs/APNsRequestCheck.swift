import HubCore
import HubJSON

/// APNs' checks of a request's headers and payload (docs/protocol.md, 9.2 to 9.5); pure functions.
struct APNsRequestCheck {
    /// Bundle id of the simulated app.
    let topic: String

    static let payloadBytesMax = 4096
    static let voipPayloadBytesMax = 5120
    static let collapseIDBytesMax = 64
    static let tokenDigitsMax = 200

    /// Suffix that each push type appends to the bundle id; nil if its topic is not a bundle id.
    private static let suffixes: [String: String?] = [
        "alert": "", "background": "", "liveactivity": ".push-type.liveactivity", "voip": ".voip", "pushtotalk": ".voip-ptt",
        "location": ".location-query", "complication": ".complication", "widgets": ".push-type.widgets",
        "controls": ".push-type.controls", "fileprovider": ".pushkit.fileprovider", "mdm": nil,
    ]
    private static let singleHeaders = [
        "authorization", "apns-topic", "apns-push-type", "apns-priority", "apns-expiration", "apns-collapse-id", "apns-id",
    ]

    /// The device token in the path, or the reason why there is none.
    static func deviceToken(in request: ReceivedRequest) -> (token: String, refusal: String?) {
        let segments = request.pathSegments
        guard segments.count >= 2, segments[0] == "3", segments[1] == "device" else { return ("", "BadPath") }
        guard segments.count <= 3 else { return ("", "BadPath") }
        guard request.method == "POST" else { return ("", "MethodNotAllowed") }
        let token = segments.count == 3 ? segments[2] : ""
        return (token, token.isEmpty ? "MissingDeviceToken" : nil)
    }

    /// The reason of the first refusal; nil if the request is valid. The provider token is checked elsewhere.
    func refusal(of request: ReceivedRequest, token: String) -> String? {
        for name in Self.singleHeaders where request.headers.count(where: { $0.name == name }) > 1 {
            return "DuplicateHeaders"
        }
        let isHex = token.utf8.allSatisfy {
            (0x30...0x39).contains($0) || (0x41...0x46).contains($0) || (0x61...0x66).contains($0)
        }
        guard isHex, token.utf8.count.isMultiple(of: 2), token.utf8.count <= Self.tokenDigitsMax else { return "BadDeviceToken" }
        let pushType = request.header("apns-push-type")
        return topicRefusal(request.header("apns-topic"), pushType: pushType) ?? headerRefusal(request)
            ?? payloadRefusal(request, pushType: pushType)
    }

    private func topicRefusal(_ value: String?, pushType: String?) -> String? {
        guard let value, !value.isEmpty else { return "MissingTopic" }
        let isWellFormed = value.utf8.allSatisfy {
            (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0) || $0 == 0x2E || $0 == 0x2D
        }
        guard isWellFormed else { return "BadTopic" }
        guard let suffix = Self.suffixes[pushType ?? "alert"] else { return "InvalidPushType" }
        guard let suffix else { return nil }
        if value == topic + suffix { return nil }
        // The topic of the simulated app, but of another push type.
        return value == topic || value.hasPrefix(topic + ".") ? "BadTopic" : "DeviceTokenNotForTopic"
    }

    private func headerRefusal(_ request: ReceivedRequest) -> String? {
        if let value = request.header("apns-priority"), !["10", "5", "1"].contains(value) { return "BadPriority" }
        if let value = request.header("apns-expiration"), Int64(value).map({ $0 < 0 }) ?? true { return "BadExpirationDate" }
        if let value = request.header("apns-collapse-id"), value.utf8.count > Self.collapseIDBytesMax { return "BadCollapseId" }
        if let value = request.header("apns-id"), !CanonicalUUID.isValid(value) { return "BadMessageId" }
        return nil
    }

    private func payloadRefusal(_ request: ReceivedRequest, pushType: String?) -> String? {
        guard request.bodyBytes > 0 else { return "PayloadEmpty" }
        let bytesMax = pushType == "voip" ? Self.voipPayloadBytesMax : Self.payloadBytesMax
        guard request.bodyBytes <= bytesMax else { return "PayloadTooLarge" }
        guard let payload = try? JSONValue(parsing: request.body), let aps = payload["aps"], let members = aps.objectValue
        else { return "InvalidPayload" }
        let isVisible = APNsPayloadCheck.visible.contains { aps[$0] != nil && aps[$0] != .null }
        switch pushType {
        case "alert" where !isVisible: return "InvalidPushType"
        case "background":
            guard !isVisible, aps["content-available"]?.intValue == 1 else { return "InvalidPushType" }
            guard request.header("apns-priority") == "5" else { return "BadPriority" }
        case "voip", "pushtotalk":
            if let priority = request.header("apns-priority"), priority != "10" { return "BadPriority" }
        default: break
        }
        return APNsPayloadCheck.problem(members, pushType: pushType).map { "InvalidPayload: \($0)" }
    }
}

/// The form that APNs requires for `apns-id`: 8-4-4-4-12 hexadecimal digits in lower case.
enum CanonicalUUID {
    static func isValid(_ text: String) -> Bool {
        let groups = text.split(separator: "-", omittingEmptySubsequences: false)
        return groups.map(\.utf8.count) == [8, 4, 4, 4, 12]
            && groups.allSatisfy { $0.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) } }
    }
}
