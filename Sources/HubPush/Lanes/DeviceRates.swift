internal import HubCore
internal import HubDelivery

/// Push rates per device: a bucket each, and a hold after a gateway's complaint. A pure state machine over a clock.
struct DeviceRates {
    /// Burst, and then one per `everyNanoseconds`: within FCM's 240 per minute.
    static let burst: UInt64 = 20
    static let everyNanoseconds: UInt64 = nanosecondsPerSecond / 3
    /// Burst at that pace, and then one per `hourEveryNanoseconds`: 4,790 in any hour, within FCM's 5,000.
    static let hourBurst: UInt64 = 1_000
    static let hourEveryNanoseconds: UInt64 = nanosecondsPerSecond * 95 / 100
    /// Hold of a throttled device if the gateway names no time.
    static let holdLeast = Duration.seconds(5)
    /// Longest hold.
    static let holdMost = Duration.seconds(600)
    /// Devices remembered, at about 100 bytes each. If exceeded, the least recent device is forgotten. Its bucket is full again then,
    /// and its gateway will repeat a hold that still applies.
    static let devicesMax = 50_000

    private struct Account {
        /// Time at which the bucket is full again, in nanoseconds of the monotonic clock, like all times here.
        var fullAt: UInt64 = 0
        /// Time at which the hour's bucket is full again.
        var hourFullAt: UInt64 = 0
        var heldUntil: UInt64 = 0
    }

    private let hasBuckets: Bool
    private var accounts: RecentTable<Int, Account>

    /// - Parameter hasBuckets: false if the gateway has no known limit per device; only holds count then.
    init(hasBuckets: Bool, devicesMax: Int = DeviceRates.devicesMax) {
        self.hasBuckets = hasBuckets
        accounts = RecentTable(countMax: devicesMax, ageMax: Self.holdMost.milliseconds)
    }

    var count: Int { accounts.count }

    /// Least time between two pushes to a device that has used its burst up; zero: no limit is known.
    var pace: Duration { hasBuckets ? .nanoseconds(Int64(Self.everyNanoseconds)) : .zero }

    /// Counts a push.
    /// - Returns: nil if counted; else the device's wait.
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

    /// Time of the next token in a bucket that is full at `fullAt`.
    private static func freeAt(_ fullAt: UInt64, burst: UInt64, every: UInt64) -> UInt64 {
        let ahead = (burst - 1) * every
        return fullAt > ahead ? fullAt - ahead : 0
    }

    /// Holds a device after its gateway's complaint.
    /// - Parameter asked: wait requested by the gateway.
    mutating func hold(_ token: String, for asked: Duration?, now: UInt64) {
        let key = token.hashValue
        var account = accounts[key] ?? Account()
        let wait = min(Self.holdMost, max(Self.holdLeast, asked ?? .zero))
        account.heldUntil = max(account.heldUntil, now + UInt64(clamping: wait.milliseconds) * 1_000_000)
        accounts.set(account, for: key, now: Int64(clamping: now / 1_000_000))
    }
}
