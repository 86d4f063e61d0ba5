internal import HubCore
internal import HubDefinitions
internal import HubDelivery

/// A notification in APNs' form: headers and body of the request (Apple, "Generating a remote notification").
struct APNsPayload: Equatable {
    /// Apple's limit for everything but VoIP.
    static let bytesMax = APNsPushType.alert.payloadBytesMax

    /// Headers by name, without `apns-id`, which belongs to the push, and `authorization`, which belongs to the lane.
    let common: [(name: String, value: String)]
    /// `apns-id`.
    let requestID: String
    let body: [UInt8]

    init(common: [(name: String, value: String)], requestID: String, body: [UInt8]) {
        self.common = common
        self.requestID = requestID
        self.body = body
    }

    /// All headers except `authorization`.
    var headers: [String: String] {
        Dictionary(common.map { ($0.name, $0.value) } + [("apns-id", requestID)], uniquingKeysWith: { _, own in own })
    }

    static func == (left: APNsPayload, right: APNsPayload) -> Bool { left.headers == right.headers && left.body == right.body }

    /// - Parameters:
    ///   - topic: the app's bundle id.
    ///   - device: Tandem's device id, for the request id.
    ///   - now: milliseconds since 1970.
    init(_ message: PushMessage, topic: String, device: String, now: Int64) throws(PayloadFault) {
        guard message.expiresAt > now else { throw PayloadFault(reason: "expired before it was sent") }
        let type = message.pushType
        var headers = message.apnsDeliveryHeaders(type)
        let own = topic + type.topicSuffix
        if let asked = headers["apns-topic"], asked != own, type != .mdm {
            throw PayloadFault(
                reason: "asks for the apns-topic \(asked), and a push of the type \(type.rawValue) to this app has \(own); leave it out")
        }
        headers["apns-topic"] = headers["apns-topic"] ?? own
        headers["content-type"] = "application/json"
        common = headers.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) }
        requestID = RequestID.make(nid: message.nid, device: device)

        let root = try Self.rootMembers(message)
        func encode(_ cut: TextCut) -> [UInt8] {
            var root = root
            root["aps"] = APSMembers.make(message, type, cut)
            return JSONValue.object(root).serialized()
        }
        let texts = APSMembers.texts(message)
        let fitting = PayloadFit.fit(
            titles: [texts.title].compactMap { $0 }, bodies: [texts.body].compactMap { $0 }, bytesMax: type.payloadBytesMax
        ) {
            encode($0).count
        }
        guard let fitting else {
            let bytes = encode(TextCut(titleMax: 0, bodyMax: 0)).count
            throw PayloadFault(
                reason:
                    "\(bytes) bytes for APNs even without its text, which is more than APNs' \(type.payloadBytesMax) bytes; shorten its data"
            )
        }
        body = encode(fitting)
    }

    /// All members apart from `aps`.
    static func rootMembers(_ message: PushMessage) throws(PayloadFault) -> [String: JSONValue] {
        guard message.data["aps"] == nil else {
            throw PayloadFault(
                reason: "the data has a member named aps, which is Apple's; rename it, or use the definition's apns block")
        }
        var root = message.data.filter { $0.value != .null }.merging(message.apnsRoot) { _, apple in apple }
        if let image = message.image, root["image_url"] == nil { root["image_url"] = .string(image) }
        return root.merging(message.identityMembers) { _, identity in identity }
    }
}

extension PushMessage {
    /// Push type: the content's own, else derived from the payload.
    var pushType: APNsPushType {
        if kind == .alert, let asked = apnsHeaders["apns-push-type"].flatMap(APNsPushType.init) { return asked }
        if apns["event"] != nil { return .liveactivity }
        if let asked = apnsHeaders["apns-push-type"].flatMap(APNsPushType.init), asked != .alert { return asked }
        let isVisible = kind == .alert && (title != nil || body != nil || APSMembers.visible.contains { apns[$0] ?? .null != .null })
        return isVisible ? .alert : .background
    }

    /// Headers that FCM forwards to APNs as well: push type, priority, expiration, collapse id, and a requested topic.
    func apnsDeliveryHeaders(_ type: APNsPushType) -> [String: String] {
        let asked = apnsHeaders
        let expiresAt = max(1, expiresAt / 1000)
        var headers = [
            "apns-push-type": type.rawValue,
            // Apple refuses background pushes with priority 10.
            "apns-priority": type == .background ? type.priority : asked["apns-priority"] ?? type.priority,
            "apns-expiration": String(asked["apns-expiration"].flatMap { Int64($0) }.map { min($0, expiresAt) } ?? expiresAt),
        ]
        headers["apns-collapse-id"] = asked["apns-collapse-id"] ?? collapseHeader
        headers["apns-topic"] = asked["apns-topic"]
        return headers
    }
}

/// The `aps` dictionary, for APNs itself and for FCM's path to APNs.
enum APSMembers {
    /// Members that make a push visible or audible.
    static let visible = ["alert", "badge", "sound"]

    /// The alert's title and body: the platform's own take precedence over the notification's.
    static func texts(_ message: PushMessage) -> (title: String?, body: String?) {
        let alert = message.apns["alert"]
        return (alert?["title"]?.stringValue ?? message.title, alert?.stringValue ?? alert?["body"]?.stringValue ?? message.body)
    }

    /// The `aps` members. A background push has only `content-available`, because any other member would make it visible.
    /// Every other push has title and body, merged with the content's members, which win; members of `alert` merge one by one.
    static func make(_ message: PushMessage, _ type: APNsPushType, _ cut: TextCut) -> JSONValue {
        guard type != .background else { return ["content-available": 1] }
        var members: [String: JSONValue] = [:]
        // The app's service extension fetches the picture, and runs only for mutable content.
        if message.image != nil, type == .alert { members["mutable-content"] = 1 }
        for (name, value) in message.apns where value != .null && name != "alert" {
            switch (name, value) {
            // Old stored content with a flag: Apple requires the number.
            case ("content-available", .bool(let flag)), ("mutable-content", .bool(let flag)): members[name] = flag ? 1 : 0
            default: members[name] = value
            }
        }
        var alert = message.apns["alert"]?.objectValue ?? [:]
        let texts = texts(message)
        // A silent event changes a Live Activity without a banner.
        if message.kind == .alert || message.apns["alert"] != nil {
            if let title = texts.title { alert["title"] = .string(cut.title(title)) }
            if let body = texts.body { alert["body"] = .string(cut.body(body)) }
        }
        if !alert.isEmpty { members["alert"] = .object(alert) }
        // The newest change wins, so each has a time.
        if members["event"] != nil, members["timestamp"] == nil { members["timestamp"] = .int(message.committedAt / 1000) }
        return .object(members)
    }
}

extension PushMessage {
    /// APNs target: an update of a Live Activity goes to the activity's own token.
    ///
    /// Such a token dies with its activity, and says nothing about the device's token. So a dead token becomes a refusal, and acceptance
    /// proves nothing for the device.
    func addressed(
        to target: PushTarget, _ completion: @escaping @Sendable (PushOutcome) -> Void
    ) -> (target: PushTarget, completion: @Sendable (PushOutcome) -> Void) {
        guard pushType == .liveactivity, let token = liveActivityToken else { return (target, completion) }
        var activity = target
        activity.token = token
        return (
            activity,
            { outcome in
                switch outcome {
                case .dead(let reason, _, _): completion(.rejected(reason: "the Live Activity's token: \(reason)"))
                case .accepted(let providerID, _): completion(.accepted(providerID: providerID))
                default: completion(outcome)
                }
            }
        )
    }
}
