internal import HubCore
internal import HubDefinitions
internal import HubDelivery

/// A notification in FCM's form: the body of `messages:send` (FCM HTTP v1, resource `projects.messages`).
struct FCMPayload: Equatable {
    /// FCM's limit on notification, data and platform block together. The exact parts are not published, so the whole message
    /// except its target counts here.
    static let bytesMax = 4096
    /// The limit for topics and conditions.
    static let topicBytesMax = 2048
    /// Four weeks, FCM's longest time to live.
    static let ttlSecondsMax: Int64 = 2_419_200

    var body: [UInt8]

    init(body: [UInt8]) { self.body = body }

    /// - Parameter now: milliseconds since 1970.
    init(_ message: PushMessage, target: PushTarget, now: Int64) throws(PayloadFault) {
        guard message.expiresAt > now else { throw PayloadFault(reason: "expired before it was sent") }
        // A topic's subscribers are unknown, so it gets the members for every platform.
        let isMany = target.form == .topic || target.form == .condition
        let parts = try Parts(message, isApple: isMany || target.platform == .ios, isWeb: isMany || target.platform == .web, now: now)
        let bytesMax = isMany ? Self.topicBytesMax : Self.bytesMax
        let fitting = PayloadFit.fit(titles: parts.titles, bodies: parts.bodies, bytesMax: bytesMax) { parts.size($0) }
        guard let fitting else {
            let bytes = parts.size(TextCut(titleMax: 0, bodyMax: 0))
            throw PayloadFault(
                reason: "\(bytes) bytes for FCM even without its text, which is more than FCM's \(bytesMax) bytes; shorten its data")
        }
        var sent = parts.members(fitting)
        sent[target.form.rawValue] = .string(target.token)
        body = JSONValue.object(["message": .object(sent)]).serialized()
    }

    /// Whether the message with its whole text has room at FCM and at APNs, without a fault. Builds one message with the members of all
    /// platforms, which none of them exceeds. False says nothing.
    static func fitsEverywhere(_ message: PushMessage, now: Int64) -> Bool {
        guard message.expiresAt > now, message.apnsHeaders["apns-topic"] == nil,
            let parts = try? Parts(message, isApple: true, isWeb: true, now: now)
        else { return false }
        return parts.size(.none) <= min(bytesMax, APNsPayload.bytesMax)
    }

    /// FCM's data is a map of strings: a number is refused with 400.
    static func stringified(_ data: [String: JSONValue]) throws(PayloadFault) -> [String: JSONValue] {
        var strings: [String: JSONValue] = [:]
        for (key, value) in data {
            // Two of Google's pages disagree about the prefixes; both readings are refused here.
            if key.isEmpty || key == "from" || key == "message_type" || key.hasPrefix("google") || key.hasPrefix("gcm") {
                throw PayloadFault(
                    reason: "the data has a member named \"\(key)\", which FCM reserves; rename it in the definition")
            }
            switch value {
            case .null: break
            case .string: strings[key] = value
            case .bool, .int, .double, .array, .object: strings[key] = .string(value.text)
            }
        }
        return strings
    }
}

extension FCMPayload {
    /// The message without its target; texts can still be cut.
    private struct Parts {
        let message: PushMessage
        let data: [String: JSONValue]
        let android: FCMAndroid
        let webpush: FCMWebpush?
        /// Members that APNs gets from FCM apart from `aps`; nil if no Apple device gets the message.
        let appleRoot: [String: JSONValue]?
        /// Whether FCM's SDK shows the message; otherwise the app gets data only.
        var isShown: Bool { message.kind == .alert && message.content != .data }

        init(_ message: PushMessage, isApple: Bool, isWeb: Bool, now: Int64) throws(PayloadFault) {
            self.message = message
            var members = message.data
            if message.kind == .alert, message.content == .data {
                // Members that the app needs to draw the notification itself. Cut texts are added later.
                let own = message.android["notification"] ?? .object(message.android)
                for name in ["channel_id", "image"] where members[name] == nil { members[name] = own[name] }
                if members["image"] == nil { members["image"] = message.image.map(JSONValue.string) }
                if members["notification_id"] == nil { members["notification_id"] = .string(String(message.androidNotificationID)) }
            }
            data = try stringified(members.merging(message.identityMembers) { _, identity in identity })
            android = try FCMAndroid(message, data: data, now: now)
            webpush = isWeb ? try FCMWebpush(message, data: data, now: now) : nil
            appleRoot = isApple ? try APNsPayload.rootMembers(message) : nil
        }

        var titles: [String] {
            [message.title, appleRoot == nil ? nil : APSMembers.texts(message).title].compactMap { $0 } + android.titles
                + (webpush?.titles ?? [])
        }
        var bodies: [String] {
            [message.body, appleRoot == nil ? nil : APSMembers.texts(message).body].compactMap { $0 } + android.bodies
                + (webpush?.bodies ?? [])
        }

        func members(_ cut: TextCut) -> [String: JSONValue] {
            var data = data
            var members: [String: JSONValue] = [:]
            if isShown {
                var notification: [String: JSONValue] = [:]
                notification["title"] = message.title.map { .string(cut.title($0)) }
                notification["body"] = message.body.map { .string(cut.body($0)) }
                notification["image"] = message.image.map(JSONValue.string)
                if !notification.isEmpty { members["notification"] = .object(notification) }
            } else if message.kind == .alert {
                if data["title"] == nil { data["title"] = message.title.map { .string(cut.title($0)) } }
                if data["body"] == nil { data["body"] = message.body.map { .string(cut.body($0)) } }
            }
            members["data"] = .object(data)
            members[android.isV2 ? "android_v2" : "android"] = android.members(cut)
            if appleRoot != nil { members["apns"] = apple(cut) }
            if let webpush { members["webpush"] = webpush.members(cut) }
            if !message.fcmOptions.isEmpty { members["fcm_options"] = .object(message.fcmOptions) }
            return members
        }

        /// Bytes of the message, or of its APNs form if larger.
        func size(_ cut: TextCut) -> Int {
            let whole = JSONValue.object(members(cut)).serialized().count
            guard var root = appleRoot else { return whole }
            root["aps"] = APSMembers.make(message, message.pushType, cut)
            return max(whole, JSONValue.object(root).serialized().count)
        }

        private func apple(_ cut: TextCut) -> JSONValue {
            let type = message.pushType
            var payload = message.apnsRoot
            payload["aps"] = APSMembers.make(message, type, cut)
            var block: [String: JSONValue] = [
                "headers": .object(message.apnsDeliveryHeaders(type).mapValues { .string($0) }), "payload": .object(payload),
            ]
            var options = message.apnsOptions
            if isShown, options["image"] == nil { options["image"] = message.image.map(JSONValue.string) }
            if !options.isEmpty { block["fcm_options"] = .object(options) }
            block["live_activity_token"] = message.liveActivityToken.map(JSONValue.string)
            return .object(block)
        }
    }
}
