internal import HubCore
package import HubDefinitions

/// Ages at which a token that its app no longer tells counts for less.
///
/// An app tells its token at every start. A gateway that still accepts a token may keep a push for a device that nobody uses.
package struct TokenAge: Sendable, Equatable {
    /// Milliseconds without word of the app after which a token is stale.
    package var staleAfterMilliseconds: Int64

    /// Stale after 30 days.
    package static let standard = TokenAge(staleAfter: .seconds(30 * 86_400))
    /// Milliseconds without word of app or gateway after which a token is expired: 270 days, when FCM refuses it.
    package static let expiredAfterMilliseconds: Int64 = 270 * 86_400_000

    /// - Parameter staleAfter: time without word of the app after which a token is stale.
    package init(staleAfter: Duration) {
        staleAfterMilliseconds = staleAfter.milliseconds
    }

    /// Whether the app last told the token too long ago; `now` is in milliseconds since 1970.
    package func isStale(_ device: Device, now: Int64) -> Bool { now - device.refreshedAt > staleAfterMilliseconds }

    /// Whether a token is too old for any push. A gateway's acceptance counts as word of it, however long ago its app was started.
    package static func isExpired(_ device: Device, now: Int64) -> Bool {
        now - max(device.refreshedAt, device.lastAcceptedAt ?? .min) > expiredAfterMilliseconds
    }

    /// Same check for a `DeviceTarget`, which carries only the two dates.
    package static func isExpired(_ target: DeviceTarget, now: Int64) -> Bool {
        now - max(target.refreshedAt, target.lastAcceptedAt ?? .min) > expiredAfterMilliseconds
    }

    /// Devices that a push under this policy tries. A stale token is worth trying only for an event that must not be missed, an expired one
    /// never.
    /// - Parameter now: milliseconds since 1970.
    package func worthTrying(_ devices: [Device], for policy: Policy, now: Int64) -> [Device] {
        func isWorthTrying(_ device: Device) -> Bool {
            !(policy.passesOverStaleTokens && isStale(device, now: now)) && !Self.isExpired(device, now: now)
        }
        // Mostly all pass, and then no list is made.
        return devices.allSatisfy(isWorthTrying) ? devices : devices.filter(isWorthTrying)
    }
}

extension Policy {
    /// Whether pushes are worthless to an app that was not started for a month, as wake-ups and advertisements are.
    fileprivate var passesOverStaleTokens: Bool {
        switch self {
        case .sync, .pushOnly: true
        case .realtimeOnly, .notify, .critical, .both: false
        }
    }
}
