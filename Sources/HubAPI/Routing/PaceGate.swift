internal import HubCore
internal import HubDefinitions
internal import HubDelivery
internal import PusherProtocol
internal import Synchronization

/// A rate: a burst from a full bucket, then one per interval.
struct Pace: Sendable {
    let burst: UInt64
    let everyMilliseconds: UInt64

    /// 100 at once, ten per second.
    static let usual = Pace(burst: 100, everyMilliseconds: 100)
    /// A client may subscribe to all the channels of a connection at once, and may have a second device.
    static let authorizations = Pace(burst: 2000, everyMilliseconds: 20)
    /// Tokens change rarely, and each change is written to disk.
    static let registrations = Pace(burst: 60, everyMilliseconds: 1000)

    /// `10 in a second`
    fileprivate var words: String {
        everyMilliseconds <= 1000 ? "\(1000 / everyMilliseconds) in a second" : "\(60_000 / everyMilliseconds) in a minute"
    }
}

/// Rate limiter with a token bucket per name. Pure; time comes as an argument.
struct PaceLimiter {
    /// Names remembered, at about 200 bytes each. If exceeded, the least recent name is forgotten and starts with a full bucket.
    static let peopleMax = 50_000

    private let pace: Pace
    /// Time of the next full bucket, in milliseconds.
    private var fullAt: RecentTable<String, UInt64>

    init(_ pace: Pace = .usual, peopleMax: Int = PaceLimiter.peopleMax) {
        self.pace = pace
        // A bucket unused for this long is full.
        fullAt = RecentTable(countMax: peopleMax, ageMax: Int64(pace.burst * pace.everyMilliseconds))
    }

    /// Names remembered.
    var personCount: Int { fullAt.count }

    /// Takes one from the bucket. Amortised O(1).
    /// - Parameter now: monotonic, in milliseconds.
    /// - Returns: nil if taken; else the milliseconds until the bucket has one again.
    mutating func take(_ person: String, now: UInt64) -> UInt64? {
        let known = max(fullAt[person] ?? now, now)
        let freeAt = known - min(known, (pace.burst - 1) * pace.everyMilliseconds)
        if freeAt > now { return freeAt - now }
        fullAt.set(known + pace.everyMilliseconds, for: person, now: Int64(clamping: now))
        return nil
    }
}

/// One limiter for all threads.
final class PaceGate: Sendable {
    private let limiter: Mutex<PaceLimiter>
    private let subject: String
    private let pace: Pace

    /// - Parameter subject: the limited thing, for the refusal: `receipts of this participant`.
    init(_ subject: String, _ pace: Pace = .usual) {
        limiter = Mutex(PaceLimiter(pace))
        self.subject = subject
        self.pace = pace
    }

    /// Counts one for the participant, or refuses it.
    /// - Parameter now: monotonic, in nanoseconds.
    func pass(_ bearer: Bearer, now: UInt64) throws(APIError) {
        // Unambiguous, because an app's id is digits.
        try pass("\(bearer.app.id)/\(bearer.participant.user)", now: now)
    }

    /// Counts one for the name, or refuses it.
    func pass(_ name: String, now: UInt64) throws(APIError) {
        guard let wait = limiter.withLock({ $0.take(name, now: now / 1_000_000) }) else { return }
        let seconds = (wait + 999) / 1000
        throw APIError(429, "too many \(subject): send at most \(pace.words)", headers: ["Retry-After": String(seconds)])
    }
}
