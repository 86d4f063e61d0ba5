internal import CLibCurl
internal import Synchronization

/// The only way into a `CurlLoop` from other threads: waiting calls, and orders for the loop.
final class CurlInbox: Sendable {
    struct Waiting: Sendable {
        let call: HTTPCall
        let completion: HTTPCompletion
        let until: ContinuousClock.Instant
    }

    private enum Phase {
        case running
        case closing(deadline: ContinuousClock.Instant)
        case closed
    }

    /// `multi` is not nil exactly as long as the loop keeps the handle alive. `curl_multi_wakeup` is the only function
    /// that other threads may call on it, and only under this lock.
    @safe private struct State {
        var multi: UnsafeMutableRawPointer?
        var phase = Phase.running
        var waiting = CallQueue()
        var wakePending = false
        var renewalAsked = false
        var counters = CurlCounters()
    }

    private let state: Mutex<State>
    private let queueMax: Int
    private let queueWaitMax: Duration

    init(options: CurlOptions) {
        state = Mutex(State())
        queueMax = options.queueMax
        queueWaitMax = options.queueWaitMax
    }

    // MARK: From any thread

    /// Nil if the call was taken; otherwise the reason, and the caller still has to run the completion.
    func add(_ call: HTTPCall, _ completion: @escaping HTTPCompletion) -> HTTPClientError? {
        let until = ContinuousClock.now + queueWaitMax
        return state.withLock { state in
            guard case .running = state.phase else { return .shutDown(.notSent) }
            guard state.waiting.count < queueMax else {
                state.counters.refused += 1
                return .queueFull
            }
            state.counters.submitted += 1
            state.waiting.append(Waiting(call: call, completion: completion, until: until))
            Self.wake(&state)
            return nil
        }
    }

    func askForRenewal() {
        state.withLock { state in
            state.renewalAsked = true
            Self.wake(&state)
        }
    }

    func close(deadline: ContinuousClock.Instant) {
        state.withLock { state in
            guard case .running = state.phase else { return }
            state.phase = .closing(deadline: deadline)
            Self.wake(&state)
        }
    }

    var counters: CurlCounters {
        state.withLock { state in
            var counters = state.counters
            counters.queued = state.waiting.count
            return counters
        }
    }

    private static func wake(_ state: inout State) {
        guard !state.wakePending, let multi = unsafe state.multi else { return }
        state.wakePending = true
        unsafe curl_multi_wakeup(multi)
    }

    // MARK: From the loop's thread

    struct Orders {
        var renew: Bool
        /// Set once closing was requested.
        var deadline: ContinuousClock.Instant?
        var isEmpty: Bool
        /// Time at which the first waiting call times out.
        var nextExpiry: ContinuousClock.Instant?
    }

    func attach(_ multi: UnsafeMutableRawPointer) {
        // The lock takes the pointer as a number, because a pointer cannot be sent to another region.
        let address = UInt(bitPattern: multi)
        state.withLock { state in
            unsafe state.multi = UnsafeMutableRawPointer(bitPattern: address)
            state.wakePending = false
        }
    }

    func takeOrders() -> Orders {
        state.withLock { state in
            state.wakePending = false
            defer { state.renewalAsked = false }
            var deadline: ContinuousClock.Instant?
            if case .closing(let instant) = state.phase { deadline = instant }
            return Orders(
                renew: state.renewalAsked, deadline: deadline, isEmpty: state.waiting.count == 0,
                nextExpiry: state.waiting.first?.until)
        }
    }

    func next() -> Waiting? { state.withLock { $0.waiting.popFirst() } }

    func takeExpired(now: ContinuousClock.Instant) -> [Waiting] {
        state.withLock { state in
            var expired: [Waiting] = []
            while let first = state.waiting.first, first.until <= now, let call = state.waiting.popFirst() {
                expired.append(call)
            }
            return expired
        }
    }

    func count(_ change: (inout CurlCounters) -> Void) { state.withLock { change(&$0.counters) } }

    /// Closes the inbox: no other thread touches the multi handle any more, and the waiting calls are returned.
    func seal() -> [Waiting] {
        state.withLock { state in
            state.phase = .closed
            unsafe state.multi = nil
            var rest: [Waiting] = []
            while let call = state.waiting.popFirst() { rest.append(call) }
            return rest
        }
    }
}

/// Numbers of one client, for metrics.
package struct CurlCounters: Sendable, Equatable {
    /// Calls taken into the queue since the start.
    package var submitted = 0
    /// Calls refused because the queue was full.
    package var refused = 0
    /// Calls that ended with an answer, whatever its status.
    package var answered = 0
    /// Calls that ended without an answer.
    package var failed = 0
    /// Connections libcurl opened for calls that have ended.
    package var connectionsOpened = 0
    /// Calls that libcurl sent more than once, so the peer may have seen them twice. Includes calls with a refused stream.
    package var repeatedByLibcurl = 0
    /// Answers over HTTP versions before 2.
    package var answeredOverHTTP1 = 0
    /// Times all connections were closed on purpose.
    package var renewals = 0
    /// Calls waiting at present.
    package var queued = 0
    /// Calls inside libcurl at present.
    package var inFlight = 0
    /// Limit on calls inside libcurl when the last call ended.
    package var window = 0
    /// Maximum of calls that were inside libcurl at once.
    package var inFlightPeak = 0

    package init() {}
}

/// A queue whose removals do not move the rest every time.
private struct CallQueue {
    private var calls: [CurlInbox.Waiting?] = []
    private var head = 0

    var count: Int { calls.count - head }
    var first: CurlInbox.Waiting? { head < calls.count ? calls[head] : nil }

    mutating func append(_ call: CurlInbox.Waiting) { calls.append(call) }

    mutating func popFirst() -> CurlInbox.Waiting? {
        guard head < calls.count else { return nil }
        defer {
            calls[head] = nil
            head += 1
            // Half of the array is used up: moving the rest now costs one move per call on average.
            if head * 2 >= calls.count {
                calls.removeFirst(head)
                head = 0
            }
        }
        return calls[head]
    }
}
