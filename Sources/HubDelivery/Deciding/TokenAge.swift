internal import HubCore

/// How long an app may be silent about its token before the token counts for less.
///
/// An app tells its token at every start; a gateway that still accepts a token may keep a push for a device that nobody uses.
package struct TokenAge: Sendable, Equatable {
    /// Not told for longer than this, in milliseconds: stale.
    package var staleAfterMilliseconds: Int64

    package static let standard = TokenAge(staleAfter: .seconds(30 * 86_400))
    /// Neither told nor accepted for longer than this, in milliseconds: 270 days, after which FCM refuses a token.
    package static let expiredAfterMilliseconds: Int64 = 270 * 86_400_000

    package init(staleAfter: Duration) {
        staleAfterMilliseconds = staleAfter.milliseconds
    }

    package func isStale(_ device: Device, now: Int64) -> Bool { now - device.refreshedAt > staleAfterMilliseconds }

    /// A token that a gateway accepted since is alive, however long its app was not started.
    package static func isExpired(_ device: Device, now: Int64) -> Bool {
        now - max(device.refreshedAt, device.lastAcceptedAt ?? .min) > expiredAfterMilliseconds
    }

    /// The same of as much as sending knows.
    package static func isExpired(_ target: DeviceTarget, now: Int64) -> Bool {
        now - max(target.refreshedAt, target.lastAcceptedAt ?? .min) > expiredAfterMilliseconds
    }

    /// Those that a push under this policy tries: a stale token is worth it for what must not be missed, an expired one never.
    /// - Parameter now: milliseconds since 1970.
    package func worthTrying(_ devices: [Device], for policy: Policy, now: Int64) -> [Device] {
        func isWorthTrying(_ device: Device) -> Bool {
            !(policy.passesOverStaleTokens && isStale(device, now: now)) && !Self.isExpired(device, now: now)
        }
        // Mostly all of them: then no list is made.
        return devices.allSatisfy(isWorthTrying) ? devices : devices.filter(isWorthTrying)
    }
}

extension Policy {
    /// A wake-up and an advertisement are worth nothing to an app that was not started for a month.
    fileprivate var passesOverStaleTokens: Bool {
        switch self {
        case .sync, .pushOnly: true
        case .realtimeOnly, .notify, .critical, .both: false
        }
    }
}
