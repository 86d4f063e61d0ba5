internal import Dispatch
internal import HubCore
internal import HubCrypto
internal import Synchronization

/// Checks passwords and the ticket of the console, a bounded number of tries per address. Any thread.
final class ConsoleDoor: Sendable {
    /// Tries per address and minute, right ones included.
    static let triesPerMinute = 5
    /// Passwords that may wait for their check, which takes some tenths of a second each.
    static let waitingMax = 8

    private let access: ConsoleAccess
    private let time: any TimeSource
    private let limiter = Mutex(WrongCodeLimiter(wrongMax: ConsoleDoor.triesPerMinute))
    private let isTicketUsed = Mutex(false)
    private let waiting = Atomic<Int>(0)
    // A check blocks its thread, which must be none of the loops' and none of Swift's pool.
    private let queue = DispatchQueue(label: "tandem.console.passwords")

    init(_ access: ConsoleAccess, time: any TimeSource) {
        self.access = access
        self.time = time
    }

    /// Counts a try of the address before anything is checked, so that tries in parallel gain nothing.
    /// - Throws: a 429 if the minute's tries are used up.
    func count(_ address: String) throws(APIError) {
        let (peer, now) = (PeerName.of(address), time.monotonicNanoseconds)
        let isOver = limiter.withLock { limiter in
            if limiter.takesTurns(peer, now: now) { return true }
            limiter.recordWrong(peer, now: now)
            return false
        }
        guard isOver else { return }
        throw APIError(
            429, "too many tries to sign in from this address: wait a minute",
            headers: ["Retry-After": String(WrongCodeLimiter.windowNanoseconds / 1_000_000_000)])
    }

    /// Whether the ticket opens the console; it does so once.
    func opens(ticket: String) -> Bool {
        guard let own = access.ticket, constantTimeEquals(Array(ticket.utf8), Array(own.utf8)) else { return false }
        return isTicketUsed.withLock { isUsed in
            defer { isUsed = true }
            return !isUsed
        }
    }

    /// Finds the role that a password opens, and passes it to `then` once, on a thread of its own; nil: none.
    /// - Throws: a 503 if too many checks wait.
    func role(password: String, then: @escaping @Sendable (ConsoleRole?) -> Void) throws(APIError) {
        guard waiting.wrappingAdd(1, ordering: .relaxed).newValue <= Self.waitingMax else {
            waiting.wrappingSubtract(1, ordering: .relaxed)
            throw APIError(503, "too many passwords wait to be checked: try again in a moment", headers: ["Retry-After": "2"])
        }
        let access = access
        queue.async { [self] in
            // Both are checked in any case, so the time tells nothing.
            let isOperator = access.operatorPassword?.matches(password) ?? false
            let isViewer = access.viewerPassword?.matches(password) ?? false
            waiting.wrappingSubtract(1, ordering: .relaxed)
            then(isOperator ? .operator : isViewer ? .viewer : nil)
        }
    }
}
