internal import CLibCurl
internal import HubCore

/// The only way into a `CurlLoop` from other threads: a mailbox of calls and orders, whose wake-up ends libcurl's sleep.
final class CurlInbox: Sendable {
    enum Message: Sendable {
        case call(Waiting)
        /// Close every connection once no call uses them.
        case renew
        /// End at the deadline, or earlier without calls.
        case end(deadline: ContinuousClock.Instant)
    }

    struct Waiting: Sendable {
        let call: HTTPCall
        let completion: HTTPCompletion
        let until: ContinuousClock.Instant
    }

    /// `multi` is not nil exactly as long as the loop keeps the handle alive. `curl_multi_wakeup` is the only function
    /// that other threads may call on it, and only under this lock.
    @safe private struct Handle {
        var multi: UnsafeMutableRawPointer?
    }

    private let handle: Guarded<Handle>
    private let messages: Mailbox<Message>
    private let tally = Guarded(CurlCounters())
    private let queueMax: Int
    private let queueWaitMax: Duration

    init(options: CurlOptions) {
        let handle = Guarded(Handle())
        self.handle = handle
        messages = Mailbox {
            handle.withLock { handle in
                if let multi = unsafe handle.multi { unsafe curl_multi_wakeup(multi) }
            }
        }
        queueMax = options.queueMax
        queueWaitMax = options.queueWaitMax
    }

    // MARK: From any thread

    /// Nil if the call was taken; otherwise the reason, and the caller still has to run the completion.
    func add(_ call: HTTPCall, _ completion: @escaping HTTPCompletion) -> HTTPClientError? {
        let waiting = Waiting(call: call, completion: completion, until: ContinuousClock.now + queueWaitMax)
        let offer = messages.offer { _ in
            // The bound counts calls that the loop has read but not started, too.
            let isTaken = tally.withLock { counters in
                guard counters.queued < queueMax else {
                    counters.refused += 1
                    return false
                }
                counters.submitted += 1
                counters.queued += 1
                return true
            }
            return isTaken ? .call(waiting) : nil
        }
        return switch offer {
        case .first, .later: nil
        case .full: .queueFull
        case .closed: .shutDown(.notSent)
        }
    }

    func askForRenewal() { messages.post(.renew) }

    /// Takes no more calls, and ends the loop. Only the first call counts.
    func close(deadline: ContinuousClock.Instant) {
        messages.post(.end(deadline: deadline))
        messages.close()
    }

    var counters: CurlCounters { tally.withLock { $0 } }

    // MARK: From the loop's thread

    /// - Parameter multi: the handle to wake; nil: none any more.
    func attach(_ multi: UnsafeMutableRawPointer?) {
        // The lock takes the pointer as a number, because a pointer cannot be sent to another region.
        let address = UInt(bitPattern: multi)
        handle.withLock { unsafe $0.multi = UnsafeMutableRawPointer(bitPattern: address) }
    }

    /// Takes everything that has come. Costs no lock if nothing has.
    func take(into taken: inout [Message]) {
        if messages.isOccupied { messages.drain(into: &taken) }
    }

    func count(_ change: (inout CurlCounters) -> Void) {
        tally.withLock { counters in
            change(&counters)
            assert(counters.queued >= 0 && counters.inFlight >= 0, "a call gave its place back twice: \(counters)")
        }
    }

    /// Closes the inbox for good: no other thread touches the multi handle any more, and the next `take` is the last.
    func seal() {
        messages.close()
        unsafe attach(nil)
    }
}
