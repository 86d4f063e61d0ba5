package import HubCore
package import HubDefinitions

/// A rendered notification: everything that gateways need, independent of the gateway.
///
/// Rendered before the publisher's 200 and stored with the delivery, so a push after a crash has the same text.
///
/// An event has a handful of texts and up to a hundred thousand recipients. Copies share their content, also with another id or sequence.
/// Changing anything else copies the whole content.
package struct PushMessage: Sendable, Equatable {
    /// The immutable content that copies share.
    private final class Box: Sendable {
        let content: Content

        init(_ content: Content) {
            self.content = content
        }
    }

    /// Values of the properties of the same names.
    private struct Content: Sendable, Equatable {
        var event: String
        var kind: PushKind
        var policy: Policy
        var content: ContentKind
        var title: String?
        var body: String?
        var image: String?
        var data: [String: JSONValue]
        var apns: [String: JSONValue]
        var apnsRoot: [String: JSONValue]
        var apnsHeaders: [String: String]
        var apnsOptions: [String: JSONValue]
        var liveActivityToken: String?
        var android: [String: JSONValue]
        var androidV2: [String: JSONValue]
        var webpush: [String: JSONValue]
        var fcmOptions: [String: JSONValue]
        var group: String?
        var expiresAt: Int64
        var committedAt: Int64
    }

    /// Notification id, the same on every surface and every retry.
    package var nid: String
    /// The event's position in its channel; 0 before it is committed.
    package var sequence: Int64
    private var box: Box

    /// Id of the event.
    package var event: String {
        get { box.content.event }
        set { change { $0.event = newValue } }
    }
    /// Kind of the push.
    package var kind: PushKind {
        get { box.content.kind }
        set { change { $0.kind = newValue } }
    }
    /// The event's policy, which says whether and why the push can be held back.
    package var policy: Policy {
        get { box.content.policy }
        set { change { $0.policy = newValue } }
    }
    /// Whether FCM's SDK shows the notification, or the app does from its data.
    package var content: ContentKind {
        get { box.content.content }
        set { change { $0.content = newValue } }
    }
    /// Title; nil for none.
    package var title: String? {
        get { box.content.title }
        set { change { $0.title = newValue } }
    }
    /// Text; nil for none.
    package var body: String? {
        get { box.content.body }
        set { change { $0.body = newValue } }
    }
    /// Address of an image; nil for none.
    package var image: String? {
        get { box.content.image }
        set { change { $0.image = newValue } }
    }
    /// Application data. FCM gets every value as a string, APNs gets the values unchanged next to `aps`.
    package var data: [String: JSONValue] {
        get { box.content.data }
        set { change { $0.data = newValue } }
    }
    /// Members of `aps` except title and body (`sound`, `interruption-level`, …), Live Activities' among them.
    package var apns: [String: JSONValue] {
        get { box.content.apns }
        set { change { $0.apns = newValue } }
    }
    /// Members next to `aps` for Apple's devices only, in addition to the data.
    package var apnsRoot: [String: JSONValue] {
        get { box.content.apnsRoot }
        set { change { $0.apnsRoot = newValue } }
    }
    /// Headers for APNs that the content sets: `apns-priority`, `apns-push-type`, `apns-expiration`, `apns-collapse-id`, `apns-topic`.
    package var apnsHeaders: [String: String] {
        get { box.content.apnsHeaders }
        set { change { $0.apnsHeaders = newValue } }
    }
    /// `fcm_options` of FCM's apns block: `analytics_label`, `image`.
    package var apnsOptions: [String: JSONValue] {
        get { box.content.apnsOptions }
        set { change { $0.apnsOptions = newValue } }
    }
    /// The Live Activity's own token: APNs' device token, and FCM's `live_activity_token`.
    package var liveActivityToken: String? {
        get { box.content.liveActivityToken }
        set { change { $0.liveActivityToken = newValue } }
    }
    /// AndroidConfig. Older versions stored members of its `notification` on the same level.
    package var android: [String: JSONValue] {
        get { box.content.android }
        set { change { $0.android = newValue } }
    }
    /// AndroidConfigV2, instead of `android`.
    package var androidV2: [String: JSONValue] {
        get { box.content.androidV2 }
        set { change { $0.androidV2 = newValue } }
    }
    /// FCM's webpush block: `headers`, `data`, `notification`, `fcm_options`.
    package var webpush: [String: JSONValue] {
        get { box.content.webpush }
        set { change { $0.webpush = newValue } }
    }
    /// The message's own `fcm_options`: `analytics_label`.
    package var fcmOptions: [String: JSONValue] {
        get { box.content.fcmOptions }
        set { change { $0.fcmOptions = newValue } }
    }
    /// Group of notifications that replace each other on a device; nil for none.
    package var group: String? {
        get { box.content.group }
        set { change { $0.group = newValue } }
    }
    /// Time after which the notification is worthless, in milliseconds since 1970.
    package var expiresAt: Int64 {
        get { box.content.expiresAt }
        set { change { $0.expiresAt = newValue } }
    }
    /// Time of the event's commit, in milliseconds since 1970.
    package var committedAt: Int64 {
        get { box.content.committedAt }
        set { change { $0.committedAt = newValue } }
    }

    /// - Parameter policy: nil for `critical`, or `sync` for a silent push.
    package init(
        nid: String, event: String, kind: PushKind, policy: Policy? = nil, content: ContentKind = .both, title: String?, body: String?,
        image: String? = nil, data: [String: JSONValue] = [:], apns: [String: JSONValue] = [:], apnsRoot: [String: JSONValue] = [:],
        apnsHeaders: [String: String] = [:], apnsOptions: [String: JSONValue] = [:], liveActivityToken: String? = nil,
        android: [String: JSONValue] = [:], androidV2: [String: JSONValue] = [:],
        webpush: [String: JSONValue] = [:], fcmOptions: [String: JSONValue] = [:],
        group: String? = nil, expiresAt: Int64, committedAt: Int64, sequence: Int64 = 0
    ) {
        self.nid = nid
        self.sequence = sequence
        box = Box(
            Content(
                event: event, kind: kind, policy: policy ?? (kind == .silent ? .sync : .critical), content: content, title: title,
                body: body,
                image: image, data: data, apns: apns, apnsRoot: apnsRoot, apnsHeaders: apnsHeaders, apnsOptions: apnsOptions,
                liveActivityToken: liveActivityToken, android: android, androidV2: androidV2, webpush: webpush, fcmOptions: fcmOptions,
                group: group, expiresAt: expiresAt, committedAt: committedAt))
    }

    /// Whether only the ids differ. O(1) if one is a copy of the other.
    package func isSameText(as other: PushMessage) -> Bool {
        sequence == other.sequence && (box === other.box || box.content == other.box.content)
    }

    /// Whether ids and contents are equal. O(1) for copies.
    package static func == (left: PushMessage, right: PushMessage) -> Bool { left.nid == right.nid && left.isSameText(as: right) }

    private mutating func change(_ change: (inout Content) -> Void) {
        var content = box.content
        change(&content)
        box = Box(content)
    }
}
