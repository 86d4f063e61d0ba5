internal import HubCore
internal import HubDelivery

/// How often one device may be pushed to: a bucket for each, and a hold where its gateway has complained. A pure state machine over a
/// clock.
struct DeviceRates {
    /// At once, and then one each `everyNanoseconds`: within FCM's 240 a minute.
    static let burst: UInt64 = 20
    static let everyNanoseconds: UInt64 = nanosecondsPerSecond / 3
    /// So many at that pace, and then one each `hourEveryNanoseconds`: 4,790 in any hour, within FCM's 5,000.
    static let hourBurst: UInt64 = 1_000
    static let hourEveryNanoseconds: UInt64 = nanosecondsPerSecond * 95 / 100
    /// How long a device is left alone when its gateway calls it throttled and asks for nothing else; and at most.
    static let holdLeast = Duration.seconds(5)
    static let holdMost = Duration.seconds(600)
    /// Devices remembered, at about 100 bytes each. Of more the one that was pushed to longest ago is forgotten: its bucket is full again,
    /// and whether its hold is over the gateway says.
    static let devicesMax = 50_000

    private struct Account {
        /// When the bucket is full again, in nanoseconds of the monotonic clock, like all moments here.
        var fullAt: UInt64 = 0
        /// The same of the hour's.
        var hourFullAt: UInt64 = 0
        var heldUntil: UInt64 = 0
    }

    private let hasBuckets: Bool
    private var accounts: RecentTable<Int, Account>

    /// - Parameter hasBuckets: false where the gateway has no limit for a device that is known; then only holds count.
    init(hasBuckets: Bool, devicesMax: Int = DeviceRates.devicesMax) {
        self.hasBuckets = hasBuckets
        accounts = RecentTable(countMax: devicesMax, ageMax: Self.holdMost.milliseconds)
    }

    var count: Int { accounts.count }

    /// How long the device has to wait; nil: it may be pushed to, and this push counts.
    mutating func take(_ token: String, now: UInt64) -> Duration? {
        guard hasBuckets || accounts.count > 0 else { return nil }
        let key = token.hashValue
        var account = accounts[key] ?? Account()
        let freeAt = max(
            account.heldUntil, Self.freeAt(account.fullAt, burst: Self.burst, every: Self.everyNanoseconds),
            Self.freeAt(account.hourFullAt, burst: Self.hourBurst, every: Self.hourEveryNanoseconds))
        if freeAt > now { return .nanoseconds(Int64(clamping: freeAt - now)) }
        if hasBuckets {
            account.fullAt = max(account.fullAt, now) + Self.everyNanoseconds
            account.hourFullAt = max(account.hourFullAt, now) + Self.hourEveryNanoseconds
            accounts.set(account, for: key, now: Int64(clamping: now / 1_000_000))
        }
        return nil
    }

    /// When the bucket that is full then has something again.
    private static func freeAt(_ fullAt: UInt64, burst: UInt64, every: UInt64) -> UInt64 {
        let ahead = (burst - 1) * every
        return fullAt > ahead ? fullAt - ahead : 0
    }

    /// The gateway says that this device gets too many.
    /// - Parameter asked: how long it wants us to wait.
    mutating func hold(_ token: String, for asked: Duration?, now: UInt64) {
        let key = token.hashValue
        var account = accounts[key] ?? Account()
        let wait = min(Self.holdMost, max(Self.holdLeast, asked ?? .zero))
        account.heldUntil = max(account.heldUntil, now + UInt64(clamping: wait.milliseconds) * 1_000_000)
        accounts.set(account, for: key, now: Int64(clamping: now / 1_000_000))
    }
}
