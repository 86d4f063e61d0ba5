internal import HubCore
internal import HubCrypto

/// Schedule for signing and using provider tokens: a pure state machine over the monotonic clock.
///
/// APNs refuses tokens older than an hour, and more than one new token per connection in 20 minutes (Apple, "Establishing a token-based
/// connection to APNs"). All times are nanoseconds.
struct APNsTokenSchedule: Equatable {
    static let refreshAge: UInt64 = 45 * 60 * nanosecondsPerSecond
    static let signingFloor: UInt64 = 20 * 60 * nanosecondsPerSecond
    static let lifetime: UInt64 = 60 * 60 * nanosecondsPerSecond

    struct Signed: Equatable {
        let token: String
        let at: UInt64
    }

    enum Decision: Equatable {
        case use(String)
        case sign
        /// No signing yet; remaining nanoseconds.
        case wait(UInt64)
    }

    private var current: Signed?
    private var previous: Signed?
    private var noSigningBefore: UInt64 = 0

    mutating func decide(now: UInt64) -> Decision {
        if let current, now - current.at < Self.refreshAge || now < noSigningBefore && now - current.at < Self.lifetime {
            return .use(current.token)
        }
        return now < noSigningBefore ? .wait(noSigningBefore - now) : .sign
    }

    mutating func signed(_ token: String, now: UInt64) {
        previous = current
        current = Signed(token: token, at: now)
        noSigningBefore = now + Self.signingFloor
    }

    /// Handles APNs' complaint that `token` expired. Only the first complaint signs; later ones get the replacement.
    mutating func expired(_ token: String, now: UInt64) -> Decision {
        if let current, current.token != token { return .use(current.token) }
        return now < noSigningBefore ? .wait(noSigningBefore - now) : .sign
    }

    /// Handles too many tokens: returns to the older one while it is valid, and signs none for another 20 minutes.
    mutating func tooManyUpdates(now: UInt64) {
        noSigningBefore = now + Self.signingFloor
        if let previous, now - previous.at < Self.lifetime { current = previous }
        previous = nil
    }
}

/// The only provider token of a team and key, shared by all connections. Any thread.
final class APNsProviderToken: Sendable {
    private let key: ES256PrivateKey
    private let keyID: String
    private let teamID: String
    private let time: any TimeSource
    /// Signing happens under the lock: it takes about 50 microseconds, and waiting threads need the result.
    private let schedule = Guarded(APNsTokenSchedule())

    init(key: ES256PrivateKey, keyID: String, teamID: String, time: any TimeSource) {
        self.key = key
        self.keyID = keyID
        self.teamID = teamID
        self.time = time
    }

    enum Token: Equatable {
        case token(String)
        case wait(Duration)
    }

    func current() throws(CryptoError) -> Token { try resolve { schedule, now in schedule.decide(now: now) } }

    /// Replacement of a token that APNs calls expired.
    func replacement(for token: String) throws(CryptoError) -> Token {
        try resolve { schedule, now in schedule.expired(token, now: now) }
    }

    func tooManyUpdates() { schedule.withLock(at: time) { $0.tooManyUpdates(now: $1) } }

    private func resolve(
        _ decide: (inout APNsTokenSchedule, UInt64) -> APNsTokenSchedule.Decision
    ) throws(CryptoError) -> Token {
        try schedule.withLock(at: time) { schedule, now throws(CryptoError) in
            switch decide(&schedule, now) {
            case .use(let token): return .token(token)
            case .wait(let remaining): return .wait(.nanoseconds(Int64(clamping: remaining)))
            case .sign:
                let token = try JSONWebToken.make(
                    header: ["alg": "ES256", "kid": .string(keyID)],
                    claims: ["iss": .string(teamID), "iat": .int(time.wallSeconds)]
                ) { bytes throws(CryptoError) in try key.signature(for: bytes) }
                schedule.signed(token, now: now)
                return .token(token)
            }
        }
    }
}
