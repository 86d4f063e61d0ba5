internal import HubChannels
internal import HubDelivery
internal import Synchronization

/// So many at once, from a full bucket, and then one each so long.
struct Pace: Sendable {
    let burst: UInt64
    let everyMilliseconds: UInt64

    /// 100 at once, ten in a second.
    static let usual = Pace(burst: 100, everyMilliseconds: 100)
    /// A client may subscribe to all the channels of a connection at once, and has a second device.
    static let authorizations = Pace(burst: 2000, everyMilliseconds: 20)
    /// A token changes now and then, and each change is written to disk.
    static let registrations = Pace(burst: 60, everyMilliseconds: 1000)

    /// `10 in a second`
    fileprivate var words: String {
        everyMilliseconds <= 1000 ? "\(1000 / everyMilliseconds) in a second" : "\(60_000 / everyMilliseconds) in a minute"
    }
}

/// How often one may send something: a token bucket for each name. Pure; time comes as an argument.
struct PaceLimiter {
    /// Names remembered, at about 200 bytes each. Beyond it the one who sent longest ago begins with a full bucket.
    static let peopleMax = 50_000

    private let pace: Pace
    /// When the bucket will be full again, in milliseconds.
    private var fullAt: RecentTable<String, UInt64>

    init(_ pace: Pace = .usual, peopleMax: Int = PaceLimiter.peopleMax) {
        self.pace = pace
        // A bucket that nobody took from for so long is full.
        fullAt = RecentTable(countMax: peopleMax, ageMax: Int64(pace.burst * pace.everyMilliseconds))
    }

    /// Names remembered.
    var personCount: Int { fullAt.count }

    /// Takes one from the bucket. Costs a constant on average.
    /// - Parameter now: monotonic, in milliseconds.
    /// - Returns: nil, or for how many milliseconds the bucket stays empty; nothing was taken then.
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

    /// - Parameter subject: what is sent too often, for the refusal: `receipts of this participant`.
    init(_ subject: String, _ pace: Pace = .usual) {
        limiter = Mutex(PaceLimiter(pace))
        self.subject = subject
        self.pace = pace
    }

    /// Counts one of the participant's, or refuses it.
    /// - Parameter now: monotonic, in nanoseconds.
    func pass(_ bearer: Bearer, now: UInt64) throws(APIError) {
        // An app's id is digits, so no two people share a name.
        try pass("\(bearer.app.id)/\(bearer.participant.user)", now: now)
    }

    /// As above, of whoever goes by the name.
    func pass(_ name: String, now: UInt64) throws(APIError) {
        guard let wait = limiter.withLock({ $0.take(name, now: now / 1_000_000) }) else { return }
        let seconds = (wait + 999) / 1000
        throw APIError(429, "too many \(subject): send at most \(pace.words)", headers: ["Retry-After": String(seconds)])
    }
}
