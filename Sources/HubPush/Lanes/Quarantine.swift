internal import HubCore
internal import HubDelivery

/// Share of a lane for unproven tokens: invented tokens must not crowd out real ones. A pure state machine.
///
/// The share grows by one per good token. A bad token halves it, once for all tokens in flight.
struct Quarantine {
    /// Number of unproven pushes in flight: initial, largest and smallest.
    struct Share: Equatable {
        var first: Int
        var most: Int
        var least: Int

        /// Small: `BadDeviceToken` slows a connection down.
        static let apns = Share(first: 50, most: 200, least: 2)
        /// FCM tolerates bad tokens, so a new app's first event goes out at nearly full speed.
        static let fcm = Share(first: 500, most: 800, least: 20)
    }

    /// Tokens remembered as good: those whose registration does not say so yet, and those that backends name. About 50 bytes each.
    /// If exceeded, the least recent token counts as unproven again.
    static let provenMax = 50_000
    private static let provenMilliseconds: Int64 = 24 * 3600 * 1000

    let share: Share
    private(set) var limit: Int
    private(set) var inFlight = 0
    /// Pushes that were in flight at the last halving and have not ended.
    private var stale = 0
    private var proven = RecentTable<Int, Bool>(countMax: Quarantine.provenMax, ageMax: Quarantine.provenMilliseconds)

    init(_ share: Share) {
        self.share = share
        limit = share.first
    }

    /// Topics and conditions always count as proven.
    func isProven(_ target: PushTarget) -> Bool { target.isProven || !target.form.isOfDevice || proven[target.token.hashValue] != nil }

    mutating func entered() { inFlight += 1 }

    /// - Parameter isBad: whether the gateway called the token bad; nil: not mentioned.
    mutating func left(isBad: Bool?) {
        assert(inFlight > 0, "an unproven push gave its place back twice")
        inFlight -= 1
        let isStale = stale > 0
        if isStale { stale -= 1 }
        assert(stale <= inFlight, "more pushes of before the halving than in flight")
        switch isBad {
        case true? where !isStale:
            limit = max(share.least, limit / 2)
            stale = inFlight
        case false?: limit = min(share.most, limit + 1)
        default: break
        }
    }

    /// Notes that the gateway accepted this token.
    mutating func prove(_ token: String, now: UInt64) {
        proven.set(true, for: token.hashValue, now: Int64(clamping: now / 1_000_000))
    }
}
