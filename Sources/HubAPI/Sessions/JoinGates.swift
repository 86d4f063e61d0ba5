internal import HubCore
internal import Synchronization

/// Rate limits for joins; 0: no limit.
package struct JoinLimits: Sendable {
    /// Wrong codes per address before its joins take turns.
    package var wrongCodesPerMinute = 10
    /// Joins per address, and as many device registrations via `POST /games`. Bursts may have twice as many.
    package var joinsPerMinute = 300

    /// The defaults.
    package init() {}

    /// A session accepts this many addresses at their limits, so that a known code cannot fill the store from many addresses.
    static let addressesPerSession = 10

    /// Nil: no limit.
    func pace(times factor: Int = 1) -> Pace? {
        guard joinsPerMinute > 0 else { return nil }
        let perMinute = UInt64(joinsPerMinute * factor)
        return Pace(burst: 2 * perMinute, everyMilliseconds: max(1, 60_000 / perMinute))
    }
}

/// Limits for all joins. One value serves all loops, because each loop would count for itself otherwise.
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

    /// Refuses an address with too many joins.
    func pass(address: String) throws(APIError) {
        try addresses?.pass(PeerName.of(address), now: time.monotonicNanoseconds)
    }

    /// Refuses a session with too many joins.
    func pass(app: String, session: String) throws(APIError) {
        // Unambiguous, because an app's id is digits.
        try sessions?.pass("\(app)/\(session)", now: time.monotonicNanoseconds)
    }
}

/// Waits this many nanoseconds.
package typealias Pause = @Sendable (UInt64) async -> Void

/// Key that counts a peer.
enum PeerName {
    /// - Parameter address: as text; empty: unknown.
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

    /// Called before a code is looked up: waits for a turn if the address takes turns.
    /// - Returns: whether it took a turn.
    func enter(_ address: String) async throws(APIError) -> Bool {
        let (peer, now) = (PeerName.of(address), time.monotonicNanoseconds)
        guard limiter.withLock({ $0.takesTurns(peer, now: now) }) else { return false }
        try await turn(of: peer)
        return true
    }

    /// Called after the look-up: counts a wrong code. A join without a turn takes one now if other codes of its address were found wrong
    /// meanwhile, whatever its own code. So codes tried in parallel are answered no faster than codes tried one by one.
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
