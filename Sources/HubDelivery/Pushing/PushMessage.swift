package import HubCore

/// A rendered notification: everything a gateway needs, nothing that depends on which gateway it is.
///
/// Rendered before the publisher's 200 and stored with the delivery, so a push after a crash says what it would have
/// said before.
///
/// An event has a handful of texts and up to a hundred thousand recipients: copies share what they say, and a copy with another id
/// or sequence shares it still. Changing anything else makes a copy of the whole content.
package struct PushMessage: Sendable, Equatable {
    package enum Kind: String, Sendable {
        /// Visible: title and body.
        case alert
        /// A wake-up with data only.
        case silent
    }

    /// Never changed: what many messages share.
    private final class Box: Sendable {
        let content: Content

        init(_ content: Content) {
            self.content = content
        }
    }

    /// What the properties of the same names say.
    private struct Content: Sendable, Equatable {
        var event: String
        var kind: Kind
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

    /// The same on every surface and every retry.
    package var nid: String
    /// The event's position in its channel; 0 before it is committed.
    package var sequence: Int64
    private var box: Box

    package var event: String {
        get { box.content.event }
        set { change { $0.event = newValue } }
    }
    package var kind: Kind {
        get { box.content.kind }
        set { change { $0.kind = newValue } }
    }
    /// Whether it can be held back, and by what.
    package var policy: Policy {
        get { box.content.policy }
        set { change { $0.policy = newValue } }
    }
    /// Whether FCM's SDK shows a visible one, or the app does from its data.
    package var content: ContentKind {
        get { box.content.content }
        set { change { $0.content = newValue } }
    }
    package var title: String? {
        get { box.content.title }
        set { change { $0.title = newValue } }
    }
    package var body: String? {
        get { box.content.body }
        set { change { $0.body = newValue } }
    }
    package var image: String? {
        get { box.content.image }
        set { change { $0.image = newValue } }
    }
    /// Application data; FCM gets every value as a string, APNs gets them beside `aps` as they are.
    package var data: [String: JSONValue] {
        get { box.content.data }
        set { change { $0.data = newValue } }
    }
    /// Members of `aps` beside title and body (`sound`, `interruption-level`, …), Live Activities' among them.
    package var apns: [String: JSONValue] {
        get { box.content.apns }
        set { change { $0.apns = newValue } }
    }
    /// What stands beside `aps` for Apple's devices only; the data stands there as well.
    package var apnsRoot: [String: JSONValue] {
        get { box.content.apnsRoot }
        set { change { $0.apnsRoot = newValue } }
    }
    /// Headers for APNs that the content asks for: `apns-priority`, `apns-push-type`, `apns-expiration`, `apns-collapse-id`, `apns-topic`.
    package var apnsHeaders: [String: String] {
        get { box.content.apnsHeaders }
        set { change { $0.apnsHeaders = newValue } }
    }
    /// `fcm_options` of FCM's apns block: `analytics_label`, `image`.
    package var apnsOptions: [String: JSONValue] {
        get { box.content.apnsOptions }
        set { change { $0.apnsOptions = newValue } }
    }
    /// The Live Activity's own token: where APNs is asked, and FCM's `live_activity_token`.
    package var liveActivityToken: String? {
        get { box.content.liveActivityToken }
        set { change { $0.liveActivityToken = newValue } }
    }
    /// AndroidConfig. Older versions stored members of its `notification` beside it.
    package var android: [String: JSONValue] {
        get { box.content.android }
        set { change { $0.android = newValue } }
    }
    /// AndroidConfigV2, in place of `android`.
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
    /// Replaces an older notification of the same group on the device.
    package var group: String? {
        get { box.content.group }
        set { change { $0.group = newValue } }
    }
    /// Milliseconds since 1970; after it the notification is worth nothing.
    package var expiresAt: Int64 {
        get { box.content.expiresAt }
        set { change { $0.expiresAt = newValue } }
    }
    /// When the event was committed; milliseconds since 1970.
    package var committedAt: Int64 {
        get { box.content.committedAt }
        set { change { $0.committedAt = newValue } }
    }

    /// - Parameter policy: nil: one under which nothing visible is held back.
    package init(
        nid: String, event: String, kind: Kind, policy: Policy? = nil, content: ContentKind = .both, title: String?, body: String?,
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

    /// Whether both are the same but for their ids. Takes no time where one is a copy of the other.
    package func isSameText(as other: PushMessage) -> Bool {
        sequence == other.sequence && (box === other.box || box.content == other.box.content)
    }

    package static func == (left: PushMessage, right: PushMessage) -> Bool { left.nid == right.nid && left.isSameText(as: right) }

    private mutating func change(_ change: (inout Content) -> Void) {
        var content = box.content
        change(&content)
        box = Box(content)
    }
}
