internal import HubCore
internal import HubDefinitions
internal import HubDelivery

/// FCM's WebpushConfig of a notification.
struct FCMWebpush {
    private var config: [String: JSONValue]
    private let message: PushMessage

    /// - Parameters:
    ///   - data: the message's own data, as strings.
    ///   - now: milliseconds since 1970.
    init(_ message: PushMessage, data: [String: JSONValue], now: Int64) throws(PayloadFault) {
        self.message = message
        config = message.webpush.filter { $0.value != .null }
        var headers = config["headers"]?.objectValue ?? [:]
        headers["TTL"] = .string(String(message.timeToLive(asked: headers["TTL"], now: now)))
        if headers["Urgency"] == nil { headers["Urgency"] = message.kind == .alert ? "high" : "normal" }
        if headers["Topic"] == nil, let group = message.group, !group.isEmpty { headers["Topic"] = .string(CollapseKey.webTopic(group)) }
        config["headers"] = .object(headers)
        if let own = config["data"]?.objectValue {
            config["data"] = .object(
                data.merging(try FCMPayload.stringified(own)) { _, own in own }.merging(try FCMPayload.stringified(message.identityMembers))
                {
                    _, identity in identity
                })
        }
        if var notification = config["notification"]?.objectValue {
            // The block replaces the common notification, so it must be complete.
            if notification["title"] == nil { notification["title"] = message.title.map(JSONValue.string) }
            if notification["body"] == nil { notification["body"] = message.body.map(JSONValue.string) }
            if notification["tag"] == nil { notification["tag"] = message.collapseKey.map(JSONValue.string) }
            config["notification"] = message.kind == .alert && message.content != .data ? .object(notification) : nil
        }
    }

    var titles: [String] { [config["notification"]?["title"]?.stringValue].compactMap { $0 } }
    var bodies: [String] { [config["notification"]?["body"]?.stringValue].compactMap { $0 } }

    func members(_ cut: TextCut) -> JSONValue {
        guard var notification = config["notification"]?.objectValue else { return .object(config) }
        if let title = notification["title"]?.stringValue { notification["title"] = .string(cut.title(title)) }
        if let body = notification["body"]?.stringValue { notification["body"] = .string(cut.body(body)) }
        return .object(config.merging(["notification": .object(notification)]) { $1 })
    }
}
