internal import HubCore
internal import Synchronization

/// How much joining the hub takes; 0: no limit.
package struct JoinLimits: Sendable {
    /// Wrong codes of one address before its joins take turns.
    package var wrongCodesPerMinute = 10
    /// Joins of one address, and as many registrations of devices by `POST /games`; twice as many at once.
    package var joinsPerMinute = 300

    package init() {}

    /// A session takes the joins of so many addresses at their limits: whoever has its code cannot fill the store through many of them.
    static let addressesPerSession = 10

    /// Nil: no limit.
    func pace(times factor: Int = 1) -> Pace? {
        guard joinsPerMinute > 0 else { return nil }
        let perMinute = UInt64(joinsPerMinute * factor)
        return Pace(burst: 2 * perMinute, everyMilliseconds: max(1, 60_000 / perMinute))
    }
}

/// The limits that every join passes. One value for all loops, or each would count for itself.
struct JoinGates: Sendable {
    let wrongCodes: WrongCodeGate
    private let addresses: PaceGate?
    private let sessions: PaceGate?
    private let time: any TimeSource

    init(_ limits: JoinLimits, time: any TimeSource, pause: @escaping Pause) {
        wrongCodes = WrongCodeGate(wrongMax: limits.wrongCodesPerMinute, time: time, pause: pause)
        addresses = limits.pace().map { PaceGate("joins from this address", $0) }
        sessions = limits.pace(times: JoinLimits.addressesPerSession).map { PaceGate("joins of this session", $0) }
        self.time = time
    }

    /// Refuses an address that joins too often.
    func pass(address: String) throws(APIError) {
        try addresses?.pass(PeerName.of(address), now: time.monotonicNanoseconds)
    }

    /// Refuses a session that is joined too often.
    func pass(app: String, session: String) throws(APIError) {
        // An app's id is digits, so no two sessions share a name.
        try sessions?.pass("\(app)/\(session)", now: time.monotonicNanoseconds)
    }
}

/// Waits for so many nanoseconds.
package typealias Pause = @Sendable (UInt64) async -> Void

/// The key that counts a peer.
enum PeerName {
    /// - Parameter address: as text; an unknown one is empty.
    static func of(_ address: String) -> String { IPAddress(address)?.neighbourhood.description ?? address }
}

/// One `WrongCodeLimiter` for all threads, and the waiting for turns.
final class WrongCodeGate: Sendable {
    private let limiter: Mutex<WrongCodeLimiter>
    private let time: any TimeSource
    private let pause: Pause

    init(wrongMax: Int, time: any TimeSource, pause: @escaping Pause) {
        limiter = Mutex(WrongCodeLimiter(wrongMax: wrongMax))
        self.time = time
        self.pause = pause
    }

    /// Before a code is looked up: a join of an address that takes turns waits for its own.
    /// - Returns: whether it had to take one.
    func enter(_ address: String) async throws(APIError) -> Bool {
        let (peer, now) = (PeerName.of(address), time.monotonicNanoseconds)
        guard limiter.withLock({ $0.takesTurns(peer, now: now) }) else { return false }
        try await turn(of: peer)
        return true
    }

    /// After the look-up: counts a wrong code. Where others of the address were found wrong meanwhile, a join that took no turn takes one
    /// now, whatever its code: of many codes tried at the same time no more are answered than of codes tried one by one.
    func settle(_ address: String, isRight: Bool, hadTurn: Bool) async throws(APIError) {
        let (peer, now) = (PeerName.of(address), time.monotonicNanoseconds)
        let takesTurns = limiter.withLock { $0.takesTurns(peer, now: now) }
        if takesTurns {
            if !hadTurn { try await turn(of: peer) }
        } else if !isRight {
            noteWrong(address)
        }
    }

    /// Counts a wrong code.
    func noteWrong(_ address: String) {
        let now = time.monotonicNanoseconds
        limiter.withLock { $0.recordWrong(PeerName.of(address), now: now) }
    }

    private func turn(of peer: String) async throws(APIError) {
        let now = time.monotonicNanoseconds
        guard let wait = limiter.withLock({ $0.takeTurn(peer, now: now) }) else {
            let seconds = WrongCodeLimiter.waitingMax * WrongCodeLimiter.turnNanoseconds / 1_000_000_000
            throw APIError(
                429, "too many wrong join codes from this address, and too many joins wait: try again in \(seconds) s",
                headers: ["Retry-After": String(seconds)])
        }
        if wait > 0 { await pause(wait) }
    }
}
