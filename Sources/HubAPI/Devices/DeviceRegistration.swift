internal import HubCore
internal import HubDefinitions
internal import HubDelivery

/// A request's members about a device, and the resulting device.
struct DeviceRegistration {
    /// Owner of the device.
    struct Owner {
        var app: String
        var user: String
        var device: String
    }

    /// Names of the members.
    struct MemberNames {
        var token = "token"
        var fid = "fid"
        var platform = "platform"
        var provider = "provider"
        var environment = "environment"

        /// In the body of a join, among the participant's members.
        static let join = MemberNames(
            token: "device_token", fid: "device_fid", platform: "device_platform", provider: "device_provider",
            environment: "device_token_environment")
    }

    private static let localeCharactersMax = 35
    private static let timezoneCharactersMax = 64
    private static let appVersionCharactersMax = 64

    /// An ordinary token, or a Firebase installation id.
    let token: String?
    let form: TargetForm
    let hasToken: Bool
    let platform: DevicePlatform?
    let provider: PushProvider?
    let environment: APNsEnvironment?
    let locale: String?
    let hasLocale: Bool
    let timezone: String?
    let hasTimezone: Bool
    let appVersion: String?
    let hasAppVersion: Bool
    let notifications: Bool?

    init(_ body: JSONBody, names: MemberNames = MemberNames()) throws(APIError) {
        (token, form) = try Self.target(body, names: names)
        hasToken = body.has(names.token) || body.has(names.fid)
        platform = try Self.platform(body, names: names)
        provider = try body.choice(names.provider, of: PushProvider.allCases)
        environment = try body.choice(names.environment, of: [APNsEnvironment.production, .sandbox])
        locale = try body.string("locale", charactersMax: Self.localeCharactersMax)
        hasLocale = body.has("locale")
        if let locale, locale.isEmpty || !locale.utf8.allSatisfy(Self.isLocaleCharacter) {
            throw APIError(400, "locale is not a language tag: send one such as en or de-CH")
        }
        timezone = try Self.timezone(body)
        hasTimezone = body.has("timezone")
        appVersion = try body.string("app_version", charactersMax: Self.appVersionCharactersMax)
        hasAppVersion = body.has("app_version")
        if let appVersion, appVersion.isEmpty || appVersion.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) {
            throw APIError(400, "app_version is empty or has control characters: send one such as 3.1.4")
        }
        notifications = try body.bool("notifications")
    }

    private static func target(_ body: JSONBody, names: MemberNames) throws(APIError) -> (text: String?, form: TargetForm) {
        let token = try body.string(names.token, charactersMax: DeviceToken.bytesMax)
        let fid = try body.string(names.fid, charactersMax: DeviceToken.bytesMax)
        if token != nil, fid != nil {
            throw APIError(400, "\(names.token) and \(names.fid) are both there: an installation has one of them at a time")
        }
        let (name, text) = fid == nil ? (names.token, token) : (names.fid, fid)
        if let text, !DeviceToken.isPlausible(text) {
            let bound = DeviceToken.bytesMax
            throw APIError(400, "\(name) is not a device token: send it as the gateway's SDK gave it, 1 to \(bound) printable bytes")
        }
        return (text, fid == nil ? .token : .fid)
    }

    private static func timezone(_ body: JSONBody) throws(APIError) -> String? {
        guard let name = try body.string("timezone", charactersMax: timezoneCharactersMax) else { return nil }
        // Names only: the system also accepts paths, which are not allowed here.
        let isName = !name.isEmpty && name.utf8.allSatisfy { isLocaleCharacter($0) || $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "+") }
        guard isName, name.first != "/", QuietHours.isKnown(timezone: name) else {
            throw APIError(400, "timezone is not a time zone: send its IANA name, such as Europe/Berlin")
        }
        return name
    }

    static func platform(_ body: JSONBody, names: MemberNames) throws(APIError) -> DevicePlatform? {
        try body.choice(names.platform, of: [DevicePlatform.android, .ios, .web])
    }

    /// Registration without a token requires that notifications are declined.
    func requireToken() throws(APIError) {
        if token == nil, notifications != false {
            throw APIError(400, "token is missing: send the device token or its fid, or notifications: false for a device without one")
        }
    }

    /// Platform of an unnamed one: only Apple's own tokens are recognisable; all others go through FCM.
    var inferredPlatform: DevicePlatform? {
        if let platform { return platform }
        if let provider { return provider == .apns ? .ios : .android }
        return token.map { form == .token && DeviceToken.looksLikeAPNs($0) ? .ios : .android }
    }

    /// The device after this registration.
    /// - Parameters:
    ///   - former: source of missing members; nil: they get their defaults.
    ///   - environment: of APNs tokens without an environment.
    func device(
        of owner: Owner, former: Device?, environment fallback: APNsEnvironment, now: Int64
    ) throws(APIError) -> Device {
        guard let platform = platform ?? former?.platform ?? inferredPlatform else {
            throw APIError(400, "platform is missing: send \"android\", \"ios\" or \"web\"")
        }
        let token = hasToken ? token : former?.token
        let form = hasToken ? form : former?.form ?? .token
        let provider = provider ?? (form == .fid ? .fcm : Self.provider(of: token, on: platform, former: former?.provider))
        if provider == .apns, form == .fid {
            throw APIError(400, "a fid goes with provider fcm only: leave provider out")
        }
        if provider == .apns, platform != .ios {
            throw APIError(400, "provider apns goes with platform ios only: \(platform.rawValue) devices are reached through fcm")
        }
        if provider == .apns, let token, !DeviceToken.isHexBytes(token) {
            throw APIError(
                400, "an APNs device token is an even number of hexadecimal digits: send that, or provider fcm for an FCM token")
        }
        return Device(
            app: owner.app, user: owner.user, id: owner.device, platform: platform, provider: provider,
            // One spelling per token: a token has one owner, and the store compares text.
            token: provider == .apns ? token?.lowercased() : token, form: form,
            environment: environment ?? former?.environment ?? fallback, locale: hasLocale ? locale : former?.locale,
            timezone: hasTimezone ? timezone : former?.timezone, appVersion: hasAppVersion ? appVersion : former?.appVersion,
            notifications: notifications ?? former?.notifications ?? true, registeredAt: now,
            refreshedAt: hasToken ? now : former?.refreshedAt ?? now)
    }

    /// A device registered for APNs stays there as long as its token allows it.
    private static func provider(of token: String?, on platform: DevicePlatform, former: PushProvider?) -> PushProvider {
        if former == .apns, platform == .ios, token.map(DeviceToken.isHexBytes) ?? true { return .apns }
        return DeviceToken.provider(of: token, on: platform)
    }

    private static func isLocaleCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}
