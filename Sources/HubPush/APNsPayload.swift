internal import HubCore
internal import HubDelivery

/// A notification in APNs' form: headers and body of the request (Apple, "Generating a remote notification").
struct APNsPayload: Equatable {
    /// Apple's limit for everything but VoIP.
    static let bytesMax = 4096

    /// Without `authorization`, which belongs to the lane.
    var headers: [String: String]
    var body: [UInt8]

    /// - Parameters:
    ///   - topic: the app's bundle id.
    ///   - device: Tandem's device id, for the request id.
    ///   - now: milliseconds since 1970.
    init(_ message: PushMessage, topic: String, device: String, now: Int64) throws(PayloadFault) {
        guard message.expiresAt > now else { throw PayloadFault(reason: "expired before it was sent") }
        headers = Self.deliveryHeaders(message)
        headers["apns-topic"] = topic
        headers["apns-id"] = RequestID.make(nid: message.nid, device: device)
        headers["content-type"] = "application/json"

        let root = try Self.rootMembers(message)
        func encode(_ title: String?, _ body: String?) -> [UInt8] {
            var root = root
            root["aps"] = APSMembers.make(message, title: title, body: body)
            return JSONValue.object(root).serialized()
        }
        let fitting = PayloadFit.fit(title: message.title, body: message.body, bytesMax: Self.bytesMax) { title, body in
            encode(title, body).count
        }
        guard let fitting else {
            throw PayloadFault(
                reason: "larger than APNs' \(Self.bytesMax) bytes even without its text; shorten the definition's data")
        }
        body = encode(fitting.title, fitting.body)
    }

    /// What FCM passes on to APNs as well: push type, priority, expiration, collapse id.
    static func deliveryHeaders(_ message: PushMessage) -> [String: String] {
        // Apple refuses background pushes with priority 10.
        var headers = [
            "apns-push-type": message.kind == .alert ? "alert" : "background",
            "apns-priority": message.kind == .alert ? "10" : "5",
            "apns-expiration": String(max(1, message.expiresAt / 1000)),
        ]
        headers["apns-collapse-id"] = message.collapseHeader
        return headers
    }

    /// Everything beside `aps`.
    static func rootMembers(_ message: PushMessage) throws(PayloadFault) -> [String: JSONValue] {
        guard message.data["aps"] == nil else {
            throw PayloadFault(
                reason: "the data has a member named aps, which is Apple's; rename it, or use the definition's apns block")
        }
        var root = message.data
        if let image = message.image, root["image_url"] == nil { root["image_url"] = .string(image) }
        return root.merging(message.identityMembers) { _, identity in identity }
    }
}

/// The `aps` dictionary, for APNs itself and for FCM's way to it.
enum APSMembers {
    /// A silent push has `content-available` and nothing else: with any more it would count as visible. An alert has its
    /// title and body spelled out and the definition's members merged in, which win, members of `alert` one by one.
    static func make(_ message: PushMessage, title: String?, body: String?) -> JSONValue {
        guard message.kind == .alert else { return ["content-available": 1] }
        var alert: [String: JSONValue] = [:]
        if let title { alert["title"] = .string(title) }
        if let body { alert["body"] = .string(body) }
        var members: [String: JSONValue] = [:]
        // A picture is fetched by the app's service extension, which runs only for mutable content.
        if message.image != nil { members["mutable-content"] = 1 }
        for (name, value) in message.apns where value != .null {
            switch (name, value) {
            case ("alert", .object(let own)): alert.merge(own) { _, definition in definition }
            case ("alert", .string(let text)): alert["body"] = .string(text)
            // YAML authors write true; Apple wants the number.
            case ("content-available", .bool(let flag)), ("mutable-content", .bool(let flag)): members[name] = flag ? 1 : 0
            default: members[name] = value
            }
        }
        members["alert"] = .object(alert)
        return .object(members)
    }
}
