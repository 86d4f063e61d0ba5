internal import HubDelivery

/// The share of a lane that tokens get which nobody has seen work: anybody can invent them, and they must not strangle the others. A
/// pure state machine.
///
/// The share grows by one with each token that turns out good and halves when one turns out bad, once for all that were under way.
struct Quarantine {
    /// How many may be under way: at first, as they turn out good, and when they are called bad.
    struct Share: Equatable {
        var first: Int
        var most: Int
        var least: Int

        /// Small: `BadDeviceToken` slows a connection down.
        static let apns = Share(first: 50, most: 200, least: 2)
        /// FCM bears bad tokens; a new app's first event goes out at nearly full speed.
        static let fcm = Share(first: 500, most: 800, least: 20)
    }

    /// Tokens remembered as good before their registration says so, and those that backends name themselves; at about 50 bytes each.
    /// More: the one that worked longest ago has to prove itself again.
    static let provenMax = 50_000
    private static let provenMilliseconds: Int64 = 24 * 3600 * 1000

    let share: Share
    private(set) var limit: Int
    private(set) var inFlight = 0
    /// Pushes that were under way at the last halving and have not ended.
    private var stale = 0
    private var proven = RecentTable<Int, Bool>(countMax: Quarantine.provenMax, ageMax: Quarantine.provenMilliseconds)

    init(_ share: Share) {
        self.share = share
        limit = share.first
    }

    /// Topics and conditions are no tokens.
    func isProven(_ target: PushTarget) -> Bool { target.isProven || !target.form.isOfDevice || proven[target.token.hashValue] != nil }

    mutating func entered() { inFlight += 1 }

    /// - Parameter isBad: the gateway called the token bad; nil: it said nothing about it.
    mutating func left(isBad: Bool?) {
        inFlight -= 1
        let isStale = stale > 0
        if isStale { stale -= 1 }
        switch isBad {
        case true? where !isStale:
            limit = max(share.least, limit / 2)
            stale = inFlight
        case false?: limit = min(share.most, limit + 1)
        default: break
        }
    }

    /// The gateway accepted this token.
    mutating func prove(_ token: String, now: UInt64) {
        proven.set(true, for: token.hashValue, now: Int64(clamping: now / 1_000_000))
    }
}
