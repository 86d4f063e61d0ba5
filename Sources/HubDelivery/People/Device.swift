/// System of a device.
package enum DevicePlatform: String, Sendable { case android, ios, web }

/// Push service of a device. Separate from the platform: iOS devices may be reached via FCM.
package enum PushProvider: String, Sendable, CaseIterable { case fcm, apns }

/// Apple's environment of a device token. A closed set: no host name ever comes from outside.
package enum APNsEnvironment: String, Sendable { case production, sandbox }

/// An installation of an app, with the token by which its push gateway knows it.
package struct Device: Sendable, Equatable {
    /// Id of the app.
    package var app: String
    /// User id of the owner.
    package var user: String
    /// Id of the device, unique per user.
    package var id: String
    /// System of the device.
    package var platform: DevicePlatform
    /// Push service of the token.
    package var provider: PushProvider
    /// Push token; nil for a device without one yet, or whose gateway called it dead.
    package var token: String?
    /// Form of the token: an ordinary one, or a Firebase installation id.
    package var form: TargetForm
    /// Apple's environment of the token; means nothing for FCM.
    package var environment: APNsEnvironment
    /// Locale such as `de-CH`; nil if unknown.
    package var locale: String?
    /// The device's time zone by its IANA name, such as `Europe/Berlin`.
    package var timezone: String?
    /// Version of the app; nil if unknown.
    package var appVersion: String?
    /// Whether the person allows notifications.
    package var notifications: Bool
    /// Time at which this very token was registered, in milliseconds since 1970; decides whether a 410 is about it.
    package var registeredAt: Int64
    /// Time at which the app last told its token, the same or another, in milliseconds since 1970.
    package var refreshedAt: Int64
    /// Time, to within a day, of the gateway's last acceptance of this token in this environment; nil for none yet.
    package var lastAcceptedAt: Int64?

    /// - Parameter refreshedAt: nil for the time of registration.
    package init(
        app: String, user: String, id: String, platform: DevicePlatform, provider: PushProvider, token: String?, form: TargetForm = .token,
        environment: APNsEnvironment, locale: String? = nil, timezone: String? = nil, appVersion: String? = nil,
        notifications: Bool = true, registeredAt: Int64, refreshedAt: Int64? = nil, lastAcceptedAt: Int64? = nil
    ) {
        self.app = app
        self.user = user
        self.id = id
        self.platform = platform
        self.provider = provider
        self.token = token
        self.form = form
        self.environment = environment
        self.locale = locale
        self.timezone = timezone
        self.appVersion = appVersion
        self.notifications = notifications
        self.registeredAt = registeredAt
        self.refreshedAt = refreshedAt ?? registeredAt
        self.lastAcceptedAt = lastAcceptedAt
    }
}

/// The full name of a device: ids are unique per user.
package struct DeviceName: Sendable, Hashable {
    /// Id of the app.
    package var app: String
    /// User id of the owner.
    package var user: String
    /// Id of the device.
    package var id: String

    /// A name for look-ups; nothing is checked.
    package init(app: String, user: String, id: String) {
        self.app = app
        self.user = user
        self.id = id
    }
}

/// The part of a device that sending needs.
package struct DeviceTarget: Sendable, Equatable {
    /// System of the device.
    package var platform: DevicePlatform
    /// Push service of the token.
    package var provider: PushProvider
    /// Push token; nil for none.
    package var token: String?
    /// Form of the token.
    package var form: TargetForm
    /// Apple's environment of the token.
    package var environment: APNsEnvironment
    /// Whether the app may show notifications.
    package var notifications: Bool
    /// Time of the token's registration, in milliseconds since 1970, as in `Device`.
    package var registeredAt: Int64
    /// Time at which the app last told its token, in milliseconds since 1970, as in `Device`.
    package var refreshedAt: Int64
    /// Time of the gateway's last acceptance, in milliseconds since 1970, as in `Device`.
    package var lastAcceptedAt: Int64?

    /// A target as stored.
    package init(
        platform: DevicePlatform, provider: PushProvider, token: String?, form: TargetForm, environment: APNsEnvironment,
        notifications: Bool,
        registeredAt: Int64, refreshedAt: Int64, lastAcceptedAt: Int64?
    ) {
        self.platform = platform
        self.provider = provider
        self.token = token
        self.form = form
        self.environment = environment
        self.notifications = notifications
        self.registeredAt = registeredAt
        self.refreshedAt = refreshedAt
        self.lastAcceptedAt = lastAcceptedAt
    }

    /// The target of a device.
    package init(_ device: Device) {
        self.init(
            platform: device.platform, provider: device.provider, token: device.token, form: device.form, environment: device.environment,
            notifications: device.notifications, registeredAt: device.registeredAt, refreshedAt: device.refreshedAt,
            lastAcceptedAt: device.lastAcceptedAt)
    }
}
