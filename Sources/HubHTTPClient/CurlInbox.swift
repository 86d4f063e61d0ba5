internal import CLibCurl
internal import Synchronization

/// The only door into a `CurlLoop` from other threads: calls waiting their turn, and what the loop was asked to do.
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

    /// `multi` is not nil exactly as long as the loop keeps the handle alive; `curl_multi_wakeup` is the one function
    /// that other threads may call on it, and they do so only under this lock.
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

    /// Nil when the call was taken; otherwise why not, and the completion is still the caller's to run.
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
        /// Set once closing was asked for.
        var deadline: ContinuousClock.Instant?
        var isEmpty: Bool
        /// When the first waiting call has waited too long.
        var nextExpiry: ContinuousClock.Instant?
    }

    func attach(_ multi: UnsafeMutableRawPointer) {
        // The pointer crosses into the lock as a number, because a pointer cannot be sent to another region.
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

    /// Closes the door: from now on nobody touches the multi handle, and what still waits is handed back.
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

/// Plain numbers about one client, for metrics.
package struct CurlCounters: Sendable, Equatable {
    /// Calls taken into the queue since the start.
    package var submitted = 0
    /// Calls refused because the queue was full.
    package var refused = 0
    package var answered = 0
    package var failed = 0
    /// Connections libcurl opened for calls that have ended.
    package var connectionsOpened = 0
    /// Calls that libcurl began to send more than once: the peer may have seen them twice. Those whose stream was refused are among them.
    package var repeatedByLibcurl = 0
    /// Answers that did not come over HTTP/2.
    package var answeredOverHTTP1 = 0
    /// Times all connections were given up on purpose.
    package var renewals = 0
    /// Calls waiting at the moment of reading.
    package var queued = 0
    /// Calls inside libcurl at the moment of reading.
    package var inFlight = 0
    /// Calls allowed inside libcurl when the last one ended.
    package var window = 0
    /// The most calls that were ever inside at once.
    package var inFlightPeak = 0

    package init() {}
}

/// First in, first out, without moving the rest on every removal.
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
            // Half of it is used up: moving the rest now costs each call one move on average.
            if head * 2 >= calls.count {
                calls.removeFirst(head)
                head = 0
            }
        }
        return calls[head]
    }
}
