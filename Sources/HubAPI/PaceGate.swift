internal import HubChannels
internal import HubDelivery
internal import Synchronization

/// How often one participant may send something: a token bucket for each. Pure; time comes as an argument.
struct PaceLimiter {
    /// So many at once, from a full bucket.
    static let burst: UInt64 = 100
    /// One more each so long: ten in a second.
    static let everyMilliseconds: UInt64 = 100
    /// Participants remembered, at about 200 bytes each. Beyond it the one who sent longest ago begins with a full bucket.
    static let peopleMax = 50_000

    /// When the bucket will be full again, in milliseconds.
    private var fullAt: RecentTable<String, UInt64>

    init(peopleMax: Int = PaceLimiter.peopleMax) {
        // A bucket that nobody took from for so long is full.
        fullAt = RecentTable(countMax: peopleMax, ageMax: Int64(Self.burst * Self.everyMilliseconds))
    }

    /// Participants remembered.
    var personCount: Int { fullAt.count }

    /// Takes one from the bucket. Costs a constant on average.
    /// - Parameter now: monotonic, in milliseconds.
    /// - Returns: nil, or for how many milliseconds the bucket stays empty; nothing was taken then.
    mutating func take(_ person: String, now: UInt64) -> UInt64? {
        let known = max(fullAt[person] ?? now, now)
        let freeAt = known - min(known, (Self.burst - 1) * Self.everyMilliseconds)
        if freeAt > now { return freeAt - now }
        fullAt.set(known + Self.everyMilliseconds, for: person, now: Int64(clamping: now))
        return nil
    }
}

/// One limiter for all threads.
final class PaceGate: Sendable {
    private let limiter = Mutex(PaceLimiter())
    private let subject: String

    /// - Parameter subject: what is sent too often, for the refusal: `receipts`.
    init(_ subject: String) {
        self.subject = subject
    }

    /// Counts one of the participant's, or refuses it.
    /// - Parameter now: monotonic, in nanoseconds.
    func pass(_ bearer: Bearer, now: UInt64) throws(APIError) {
        // An app's id is digits, so no two people share a name.
        let person = "\(bearer.app.id)/\(bearer.participant.user)"
        guard let wait = limiter.withLock({ $0.take(person, now: now / 1_000_000) }) else { return }
        let seconds = (wait + 999) / 1000
        throw APIError(
            429, "too many \(subject) of this participant: send at most \(1000 / PaceLimiter.everyMilliseconds) in a second",
            headers: ["Retry-After": String(seconds)])
    }
}
