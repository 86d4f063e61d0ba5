package import HubCore

/// FCM's three kinds of messages.
package enum ContentKind: String, Sendable, CaseIterable {
    /// FCM's SDK shows it; the only data is the hub's own.
    case notification
    /// The app gets data and decides what to show.
    case data
    /// Shown by the SDK, with data for the app.
    case both
}

/// The checked content of a notification, for definitions and direct sends alike.
///
/// All names are those of FCM v1 and of Apple, in the form in which they are sent.
package struct NotificationContent: Sendable, Equatable {
    /// Kind of the message.
    package var kind: ContentKind
    /// Title; nil for none.
    package var title: String?
    /// Text; nil for none.
    package var body: String?
    /// Address of an image; nil for none.
    package var image: String?
    /// Application data without null members; empty texts stay.
    package var data: [String: JSONValue]
    /// Members of `aps`, Live Activities' among them.
    package var apns: [String: JSONValue]
    /// Members next to `aps`.
    package var apnsRoot: [String: JSONValue]
    /// `apns-priority`, `apns-push-type`, `apns-expiration`, `apns-collapse-id`, `apns-topic`, where the content sets them.
    package var apnsHeaders: [String: String]
    /// ApnsConfig's `fcm_options`: `analytics_label`, `image`.
    package var apnsOptions: [String: JSONValue]
    /// Token of the Live Activity to start or update; nil for none.
    package var liveActivityToken: String?
    /// AndroidConfig, with its `notification`.
    package var android: [String: JSONValue]
    /// AndroidConfigV2, FCM's alternative to `android`.
    package var androidV2: [String: JSONValue]
    /// WebpushConfig.
    package var webpush: [String: JSONValue]
    /// FCM's options for all platforms: `analytics_label`.
    package var fcmOptions: [String: JSONValue]

    /// Whether any platform shows something; otherwise the push only wakes the app.
    package var isVisible: Bool {
        if title != nil || body != nil || image != nil { return true }
        return ["alert", "badge", "sound"].contains { apns[$0] != nil } || android["notification"] != nil
            || androidV2["remote_notification"] != nil || webpush["notification"] != nil
    }

    /// Members of a request that `init(json:)` reads.
    package static let members = ["notification", "data"] + PlatformContent.names + ["kind"]

    /// Reads a send request: `notification, data, android, android_v2, apns, webpush, fcm_options, live_activity, kind`.
    ///
    /// Each member has FCM v1's own form or a definition's flat one (members of `aps` in `apns`, of AndroidNotification in `android`).
    /// Names are in snake_case or camelCase.
    ///
    /// - Parameter others: members that the caller reads itself, ignored here and named among the known ones.
    /// - Throws: the first mistake, with the path of the member. Unknown members are mistakes.
    package init(json: [String: JSONValue], others: [String] = []) throws(ContentMistake) {
        var reader = ContentReader()
        let known = ContentObject.plain(Self.members)
        var members: [String: JSONValue] = [:]
        var legacy = FormerOptions()
        for key in json.keys.sorted() where !others.contains(key) {
            guard let value = json[key] else { continue }
            if let name = known.canonical(key) {
                if members[name] != nil { reader.note([key], .sentence("stands twice, as \(name) and in camelCase; keep one of them")) }
                if value != .null { members[name] = value }
            } else if !legacy.take(key, value, &reader) {
                reader.note([], .unknown(key, known: Self.members + others))
            }
        }
        self.init(members, reader: &reader)
        legacy.apply(to: &self)
        if let mistake = reader.mistakes.first { throw mistake }
    }

    /// - Parameter members: by canonical names.
    init(_ members: [String: JSONValue], reader: inout ContentReader) {
        let platforms = PlatformContent(members, reader: &reader)
        platforms.check(&reader)
        let shown = members["notification"].map { reader.members($0, ContentSchema.notification, at: ["notification"]) } ?? [:]
        self.init(
            title: shown["title"]?.stringValue, subtitle: shown["subtitle"]?.stringValue, body: shown["body"]?.stringValue,
            image: shown["image"]?.stringValue,
            data: members["data"].map { reader.read($0, .data, at: ["data"]) }?.objectValue ?? [:], platforms: platforms)
        if shown["subtitle"] != nil, title == nil, body == nil {
            reader.note(
                ["notification", "subtitle"], .sentence("is shown below a title, and by Apple's devices only; write title and body too"))
        }
        kind = kind(members["kind"], &reader)
        check(members, &reader)
    }

    /// Content of checked parts; the kind follows from them.
    /// - Parameter subtitle: for Apple's devices; a subtitle in the alert of `platforms` wins.
    init(title: String?, subtitle: String?, body: String?, image: String?, data: [String: JSONValue], platforms: PlatformContent) {
        self.title = title
        self.body = body
        self.image = image
        self.data = data
        apns = platforms.aps
        if let subtitle { apns["alert"] = Self.alert(apns["alert"], with: subtitle) }
        apnsRoot = platforms.apnsRoot
        apnsHeaders = platforms.apnsHeaders.compactMapValues(\.stringValue)
        apnsOptions = platforms.apns["fcm_options"]?.objectValue ?? [:]
        liveActivityToken = platforms.apns["live_activity_token"]?.stringValue
        android = platforms.android
        androidV2 = platforms.androidV2
        webpush = platforms.webpush
        fcmOptions = platforms.fcmOptions
        kind = .both
        kind = isVisible ? (data.isEmpty ? .notification : .both) : .data
    }

    /// The members of `alert`, with the subtitle unless they have their own.
    private static func alert(_ alert: JSONValue?, with subtitle: String) -> JSONValue {
        // A plain text is the body.
        var members = alert?.objectValue ?? alert?.stringValue.map { ["body": .string($0)] } ?? [:]
        if members["subtitle"] == nil, members["subtitle-loc-key"] == nil { members["subtitle"] = .string(subtitle) }
        return .object(members)
    }

    private func kind(_ value: JSONValue?, _ reader: inout ContentReader) -> ContentKind {
        guard let value else { return kind }
        guard let kind = value.stringValue.flatMap(ContentKind.init) else {
            reader.note(["kind"], .expected("one of \(ContentKind.allCases.map(\.rawValue).joined(separator: ", "))"), found: value)
            return .both
        }
        switch kind {
        case .data: break
        case .notification, .both:
            if !isVisible { reader.note(["kind"], .sentence("\(kind.rawValue) has something to show; write notification: {title, body}")) }
        }
        if kind == .notification, !data.isEmpty {
            reader.note(["kind"], .sentence("notification has no data; write kind: both, or remove the data"))
        }
        return kind
    }

    private func check(_ members: [String: JSONValue], _ reader: inout ContentReader) {
        let type = apnsHeaders["apns-push-type"].flatMap(APNsPushType.init)
        if type == .background, title != nil || body != nil, kind != .data {
            reader.note(
                ["apns", "headers", "apns-push-type"],
                .sentence("a background push shows nothing, and notification has a text; write alert"))
        }
        if type == .alert, !isVisible {
            reader.note(
                ["apns", "headers", "apns-push-type"],
                .sentence("an alert shows something; write notification: {title, body}, or background"))
        }
        if !isVisible, type == nil || type == .background, apnsHeaders["apns-priority"] == "10", apns["event"] == nil {
            reader.note(["apns", "headers", "apns-priority"], .sentence("a push that shows nothing has \"5\"; APNs refuses 10"))
        }
        if apns["mutable-content"] == 1, !isVisible {
            reader.note(
                ["apns", "mutable-content"],
                .sentence("runs the app's service extension for an alert, and there is none; write notification:"))
        }
        // FCM lowers the priority of apps whose silent messages claim to be urgent.
        if !isVisible, kind == .data, android["priority"] == "HIGH" {
            reader.note(
                ["android", "priority"],
                .sentence(
                    "HIGH is for what is shown, and FCM lowers apps that use it for silent messages; write normal, or notification: {title, body}"
                ))
        }
        let hasContent = PlatformContent.names.contains { members[$0] != nil } || !data.isEmpty
        if !hasContent, !isVisible { reader.note([], .sentence("there is nothing to send: write notification: {title, body} or data")) }
    }
}

extension ContentObject {
    /// Names without shapes, for the outermost object of a request.
    static func plain(_ names: [String]) -> ContentObject {
        names.reduce(ContentObject([:])) { $0.merged(with: ContentObject([$1: .open])) }
    }
}
