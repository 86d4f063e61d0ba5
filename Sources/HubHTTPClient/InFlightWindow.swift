/// Limit on the calls inside libcurl at once: a pure state machine.
///
/// A window is *cold* until a call over the present connection has succeeded. With priming, a cold window admits one call.
/// An open window halves after a push-back (429, 503), once for all calls that were inside together. It grows by one
/// per window of successes.
struct InFlightWindow: Equatable {
    /// Effect of an ended call on the window.
    enum Signal: Equatable {
        /// The peer accepted the call, and so the credentials.
        case proved
        /// The peer answered, but neither accepted nor complained about the rate.
        case answered
        /// 429 or 503.
        case throttled
        /// No answer: the next call may get a new connection.
        case failed
    }

    /// The signal of a status. 410 counts as proof: Apple does not hold it against the connection, and it follows the check
    /// of the credentials.
    /// - Parameter is429OfOne: whether a 429 concerns one recipient, not the client's rate.
    static func signal(status: Int, is429OfOne: Bool = false) -> Signal {
        switch status {
        case 200..<300, 410: .proved
        case 429 where is429OfOne: .answered
        case 429, 503: .throttled
        default: .answered
        }
    }

    let primes: Bool
    let narrows: Bool
    private(set) var limitMax: Int
    private(set) var isCold: Bool
    private var openLimit: Int
    /// Successes since the last change of the window.
    private var successes = 0
    /// Calls that were inside at the last halving and have not ended.
    private var stale = 0

    /// - Parameters:
    ///   - primes: whether a cold window admits only one call.
    ///   - limitMax: the largest window; at least 1.
    ///   - narrows: whether a 429 or 503 halves the window.
    init(primes: Bool, limitMax: Int, narrows: Bool = true) {
        precondition(limitMax > 0, "a window of \(limitMax) calls lets nothing through")
        self.primes = primes
        self.narrows = narrows
        self.limitMax = limitMax
        openLimit = limitMax
        isCold = primes
    }

    /// Calls allowed inside at present.
    var limit: Int { isCold ? 1 : openLimit }

    private var isConsistent: Bool { (1...limitMax).contains(openLimit) && (primes || !isCold) && successes >= 0 && stale >= 0 }

    /// - Parameter inside: calls that are still inside.
    mutating func ended(_ signal: Signal, inside: Int = 0) {
        let isStale = stale > 0
        if isStale { stale -= 1 }
        switch signal {
        case .proved: if isCold { isCold = false } else { widen() }
        case .answered: break
        case .throttled: if narrows, !isStale { halve(inside: inside) }
        case .failed: isCold = primes
        }
        assert(isConsistent, "a window of \(openLimit), at most \(limitMax), after \(successes) successes with \(stale) stale calls")
    }

    private mutating func widen() {
        successes += 1
        guard successes >= openLimit, openLimit < limitMax else { return }
        openLimit += 1
        successes = 0
    }

    private mutating func halve(inside: Int) {
        openLimit = max(1, openLimit / 2)
        successes = 0
        stale = inside
    }

    /// The next call will open a new connection.
    mutating func connectionGone() { isCold = primes }

    /// Applies the limit of the peer's HTTP version: over HTTP/1 a call per connection. A wider limit is reached by successes.
    mutating func bound(limitMax: Int) {
        self.limitMax = max(1, limitMax)
        openLimit = min(openLimit, self.limitMax)
        assert(isConsistent, "a window of \(openLimit), at most \(self.limitMax)")
    }
}
