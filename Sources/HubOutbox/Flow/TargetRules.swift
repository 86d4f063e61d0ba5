internal import HubDelivery

/// Where a push goes, by the devices that the directory has when it is sent.
struct TargetRules: Sendable {
    enum Found: Sendable {
        /// - Parameter lastAcceptedAt: milliseconds since 1970, 0 for never; nil: there is no device that it could be noted of.
        case target(PushTarget, lastAcceptedAt: Int64?)
        /// There is nothing to send to.
        case none(reason: String)
        /// The directory could not be read.
        case unknown
    }

    let tokenAge: TokenAge

    /// Age of an event after which its recipient's other devices are read again, in milliseconds. A younger push reads its own device only.
    static let waitingMin: Int64 = 60_000

    /// The target of a push that a backend addressed itself. There is no device whose token could change.
    static func target(of push: PushRecord, at address: DirectAddress) -> Found {
        let target = PushTarget(
            app: push.app, device: push.device, provider: address.provider, platform: address.platform, token: address.text,
            form: address.form, environment: address.environment)
        return .target(target, lastAcceptedAt: nil)
    }

    /// The target of a push to a registered device.
    /// - Parameters:
    ///   - device: nil: it is gone.
    ///   - now: milliseconds since 1970.
    /// - Returns: with `isChanged`, the device or its token is another than at the decision, or other devices may have come since.
    static func target(of push: PushRecord, on device: DeviceTarget?, now: Int64) -> (found: Found, isChanged: Bool) {
        let found = found(device, for: push, now: now)
        guard push.purpose == .notification, let timing = push.timing else { return (found, false) }
        if case .none = found { return (found, true) }
        let isNewer = device.map { isNew(registeredAt: $0.registeredAt, timing, now: now) } ?? true
        return (found, isNewer || now - timing.committedAt >= waitingMin)
    }

    private static func found(_ device: DeviceTarget?, for push: PushRecord, now: Int64) -> Found {
        guard let device else { return .none(reason: "no device") }
        guard let token = device.token else { return .none(reason: "no token") }
        guard device.notifications else { return .none(reason: "permission denied") }
        if TokenAge.isExpired(device, now: now) { return .none(reason: "token expired") }
        return .target(
            PushTarget(
                app: push.app, device: push.device, provider: device.provider, platform: device.platform, token: token,
                form: device.form, environment: device.environment, isProven: device.lastAcceptedAt != nil),
            lastAcceptedAt: device.lastAcceptedAt ?? 0)
    }

    /// A registration in the future was made before the wall clock was set back.
    private static func isNew(registeredAt: Int64, _ timing: PushMessage.Timing, now: Int64) -> Bool {
        registeredAt > timing.committedAt && registeredAt <= now
    }

    /// The devices that a push's recipient can be reached on now, newest registration first.
    /// - Parameters:
    ///   - devices: by app and user.
    ///   - now: milliseconds since 1970.
    func reachable(for push: PushRecord, _ devices: [String: [String: [Device]]], now: Int64) -> [Redirection.Reachable] {
        guard let timing = push.timing, let own = devices[push.app]?[push.user] else { return [] }
        return tokenAge.worthTrying(own, for: timing.policy, now: now).compactMap { device in
            guard device.notifications, let token = device.token else { return nil }
            return Redirection.Reachable(
                device: device.id, token: TokenMark(token, of: device.provider),
                isNew: Self.isNew(registeredAt: device.registeredAt, timing, now: now))
        }
    }
}

extension Redirection {
    /// Whether there is anything to decide. A push to its own device goes on unless a device has come, or another one has its token.
    var isWorthAsking: Bool {
        token == nil
            || reachable.contains { $0.device == delivery.device ? $0.isNew : $0.isNew || $0.token == token }
    }
}
