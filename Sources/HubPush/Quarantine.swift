internal import HubDelivery

/// The small share of an APNs lane that tokens get which nobody has seen work: `BadDeviceToken` slows a connection down, and must not
/// strangle the others. A pure state machine.
///
/// The share grows by one with each token that turns out good and halves when one turns out bad, once for all that were under way.
struct Quarantine {
    static let limitFirst = 50
    static let limitMax = 200
    static let limitMin = 2
    /// Tokens remembered as good before their registration says so, and those that backends name themselves; at about 50 bytes each.
    /// More: the one that worked longest ago has to prove itself again.
    static let provenMax = 50_000
    private static let provenMilliseconds: Int64 = 24 * 3600 * 1000

    private(set) var limit = Quarantine.limitFirst
    private(set) var inFlight = 0
    /// Pushes that were under way at the last halving and have not ended.
    private var stale = 0
    private var proven = RecentTable<Int, Bool>(countMax: Quarantine.provenMax, ageMax: Quarantine.provenMilliseconds)

    func isProven(_ target: PushTarget) -> Bool { target.isProven || target.provider != .apns || proven[target.token.hashValue] != nil }

    mutating func entered() { inFlight += 1 }

    /// - Parameter isBad: the gateway called the token bad; nil: it said nothing about it.
    mutating func left(isBad: Bool?) {
        inFlight -= 1
        let isStale = stale > 0
        if isStale { stale -= 1 }
        switch isBad {
        case true? where !isStale:
            limit = max(Self.limitMin, limit / 2)
            stale = inFlight
        case false?: limit = min(Self.limitMax, limit + 1)
        default: break
        }
    }

    /// The gateway accepted this token.
    mutating func prove(_ token: String, now: UInt64) {
        proven.set(true, for: token.hashValue, now: Int64(clamping: now / 1_000_000))
    }
}
