package import HubCore

/// A rendered notification: everything a gateway needs, nothing that depends on which gateway it is.
///
/// Rendered before the publisher's 200 and stored with the delivery, so a push after a crash says what it would have
/// said before.
package struct PushMessage: Sendable, Equatable {
    package enum Kind: String, Sendable {
        /// Visible: title and body.
        case alert
        /// A wake-up with data only.
        case silent
    }

    /// The same on every surface and every retry.
    package var nid: String
    package var event: String
    package var kind: Kind
    /// Whether it can be held back, and by what.
    package var policy: Policy
    /// Whether FCM's SDK shows a visible one, or the app does from its data.
    package var content: ContentKind
    package var title: String?
    package var body: String?
    package var image: String?
    /// Application data; FCM gets every value as a string, APNs gets them beside `aps` as they are.
    package var data: [String: JSONValue]
    /// Members of `aps` beside title and body (`sound`, `interruption-level`, …), Live Activities' among them.
    package var apns: [String: JSONValue]
    /// What stands beside `aps` for Apple's devices only; the data stands there as well.
    package var apnsRoot: [String: JSONValue]
    /// Headers for APNs that the content asks for: `apns-priority`, `apns-push-type`, `apns-expiration`, `apns-collapse-id`, `apns-topic`.
    package var apnsHeaders: [String: String]
    /// `fcm_options` of FCM's apns block: `analytics_label`, `image`.
    package var apnsOptions: [String: JSONValue]
    /// The Live Activity's own token: where APNs is asked, and FCM's `live_activity_token`.
    package var liveActivityToken: String?
    /// AndroidConfig. Older versions stored members of its `notification` beside it.
    package var android: [String: JSONValue]
    /// AndroidConfigV2, in place of `android`.
    package var androidV2: [String: JSONValue]
    /// FCM's webpush block: `headers`, `data`, `notification`, `fcm_options`.
    package var webpush: [String: JSONValue]
    /// The message's own `fcm_options`: `analytics_label`.
    package var fcmOptions: [String: JSONValue]
    /// Replaces an older notification of the same group on the device.
    package var group: String?
    /// Milliseconds since 1970; after it the notification is worth nothing.
    package var expiresAt: Int64
    /// When the event was committed; milliseconds since 1970.
    package var committedAt: Int64
    /// The event's position in its channel; 0 before it is committed.
    package var sequence: Int64

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
        self.event = event
        self.kind = kind
        self.policy = policy ?? (kind == .silent ? .sync : .critical)
        self.content = content
        self.title = title
        self.body = body
        self.image = image
        self.data = data
        self.apns = apns
        self.apnsRoot = apnsRoot
        self.apnsHeaders = apnsHeaders
        self.apnsOptions = apnsOptions
        self.liveActivityToken = liveActivityToken
        self.android = android
        self.androidV2 = androidV2
        self.webpush = webpush
        self.fcmOptions = fcmOptions
        self.group = group
        self.expiresAt = expiresAt
        self.committedAt = committedAt
        self.sequence = sequence
    }
}

/// What the text of a push's target is.
package enum TargetForm: String, Sendable, CaseIterable {
    /// A registration token of FCM, or a device token of APNs.
    case token
    /// A Firebase installation id.
    case fid
    /// A topic of FCM, without `/topics/`.
    case topic
    /// An expression over topics of FCM.
    case condition
}

/// Where one push goes: resolved when it is sent, because tokens change between decision and sending.
package struct PushTarget: Sendable, Equatable {
    /// The app whose credentials send it.
    package var app: String
    /// Tandem's own device id: part of the stable request id, never shown to the gateway.
    package var device: String
    package var provider: PushProvider
    package var platform: DevicePlatform
    package var token: String
    package var form: TargetForm
    package var environment: APNsEnvironment
    /// The gateway has accepted this very token before, in this environment.
    package var isProven: Bool

    package init(
        app: String = "", device: String, provider: PushProvider, platform: DevicePlatform, token: String, form: TargetForm = .token,
        environment: APNsEnvironment, isProven: Bool = false
    ) {
        self.app = app
        self.device = device
        self.provider = provider
        self.platform = platform
        self.token = token
        self.form = form
        self.environment = environment
        self.isProven = isProven
    }
}

/// What became of one attempt.
package enum PushOutcome: Sendable, Equatable {
    /// The gateway took it; its name for the message, and the environment it turned out to belong to where that is another one
    /// than the target's.
    case accepted(providerID: String, environment: APNsEnvironment? = nil)
    /// Try again, not before `after` when the gateway said so. The reason is short and free of secrets and tokens.
    case retry(after: Duration?, reason: String)
    /// The token is dead; `since` in milliseconds since 1970 when the gateway told.
    ///
    /// Not certain: it is not to be removed on this answer alone. The gateway tells separately when it is.
    case dead(reason: String, since: Int64?, isCertain: Bool = true)
    /// Will not be accepted however often it is sent.
    case rejected(reason: String)
    /// No credentials for this provider: logged as a would-be push.
    case skippedUnconfigured
}

/// Sends notifications: the contract between delivery and the gateways.
package protocol PushGateway: Sendable {
    /// Takes one push. Never blocks; `completion` runs exactly once, on a thread of the gateway's.
    ///
    /// One call is one attempt: backing off and trying again is the caller's.
    func send(_ message: PushMessage, to target: PushTarget, completion: @escaping @Sendable (PushOutcome) -> Void)
}
