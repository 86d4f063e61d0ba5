/// How many calls may be inside libcurl at once: a pure state machine, so that every transition can be tested.
///
/// A window is *cold* until a call over the present connection has succeeded; cold, it lets one call through when
/// priming was asked for. Open, it halves when the peer pushes back (429, 503): once for all calls that were inside together, because
/// they are one complaint. It grows by one with each round of successes, a window full of them.
struct InFlightWindow: Equatable {
    /// What an ended call says about the peer and the connection.
    enum Signal: Equatable {
        /// The peer accepted the call, so it accepts our credentials.
        case proved
        /// The peer answered, but neither accepted nor complained about the rate.
        case answered
        /// 429 or 503.
        case throttled
        /// No answer: whatever comes next may find a new connection.
        case failed
    }

    /// The signal in a status. 410 counts as proof: Apple says it is not held against the connection, and it comes only
    /// after the credentials were accepted.
    /// - Parameter is429OfOne: whether a 429 speaks of one recipient and not of the client's rate.
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
    /// Successes since the window last changed.
    private var successes = 0
    /// Calls that were inside when it last halved and have not ended.
    private var stale = 0

    /// - Parameters:
    ///   - primes: whether a cold window lets only one call through.
    ///   - limitMax: the widest the window gets; at least 1.
    ///   - narrows: whether a 429 or 503 halves the window.
    init(primes: Bool, limitMax: Int, narrows: Bool = true) {
        precondition(limitMax > 0, "a window of \(limitMax) calls lets nothing through")
        self.primes = primes
        self.narrows = narrows
        self.limitMax = limitMax
        openLimit = limitMax
        isCold = primes
    }

    /// Calls allowed inside at this moment.
    var limit: Int { isCold ? 1 : openLimit }

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

    /// What the version that the peer speaks allows: over HTTP/1 no more calls than connections. A wider bound is reached by successes.
    mutating func bound(limitMax: Int) {
        self.limitMax = max(1, limitMax)
        openLimit = min(openLimit, self.limitMax)
    }
}
