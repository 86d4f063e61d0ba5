internal import CLibCurl
internal import Glibc
internal import Synchronization

/// An HTTP client: one libcurl multi handle, one thread that owns it, one bounded queue in front.
///
/// Any thread. All calls to a host share connections, so a client should carry only one credential: APNs binds a connection
/// to the first team it sees. Ends with `shutdown`, or when released.
package final class CurlMulti: Sendable {
    private let inbox: CurlInbox
    private let clearText: CurlOptions.ClearText
    private let origins = KnownOrigins()
    /// Nil once a thread joins or has joined it.
    private let thread: Mutex<pthread_t?>

    /// Starts the thread.
    /// - Throws: if libcurl or the system lacks something; nothing is left behind.
    package init(_ options: CurlOptions) throws(HTTPClientError) {
        precondition(options.queueMax > 0 && options.inFlightMax > 0, "a client without room for calls")
        clearText = options.clearText
        inbox = CurlInbox(options: options)
        let start = ThreadStart(name: options.name, loop: try CurlLoop(options: options, inbox: inbox))
        let context = unsafe Unmanaged.passRetained(start).toOpaque()
        var identifier = pthread_t()
        let code = unsafe pthread_create(
            &identifier, nil,
            { context in
                guard let context = unsafe context else { return nil }
                let start = unsafe Unmanaged<ThreadStart>.fromOpaque(context).takeRetainedValue()
                blockSignals()
                unsafe tandem_curl_name_thread(start.name)
                start.loop.run()
                return nil
            }, context)
        guard code == 0 else {
            // Without its thread the loop runs here once, which frees all its resources.
            inbox.close(deadline: ContinuousClock.now)
            unsafe Unmanaged<ThreadStart>.fromOpaque(context).takeRetainedValue().loop.run()
            throw HTTPClientError(
                reason: .transport(.failedInit), delivery: .notSent,
                detail: "the system refuses a thread for the HTTP client (\(code))")
        }
        thread = Mutex(identifier)
    }

    deinit { shutdown() }

    /// Queues one call. Never blocks; `completion` runs exactly once.
    ///
    /// `completion` runs on the client's thread between other calls, so it must be quick; it may submit further calls.
    /// For a refused call (invalid, queue full, shut down) it runs on a thread of Swift's pool, never on the caller's.
    /// So submitting under a lock is safe.
    package func submit(_ call: HTTPCall, completion: @escaping HTTPCompletion) {
        let refusal = call.fault(clearText: clearText, origins: origins).map(HTTPClientError.invalidCall) ?? inbox.add(call, completion)
        if let refusal { Task { completion(.failure(refusal)) } }
    }

    /// Lets the calls in flight end, then closes every connection and opens new ones for later calls.
    ///
    /// At most once in ten seconds; further requests within that time are dropped.
    package func renewConnections() { inbox.askForRenewal() }

    /// A copy of the current numbers. Any thread.
    package var counters: CurlCounters { inbox.counters }

    /// Takes no more calls and gives accepted ones `grace` to end. The rest fail with `HTTPClientError.Reason.shutDown`.
    /// Waits for the thread.
    ///
    /// Idempotent. From within a completion it only requests the end and returns, because a thread cannot wait for itself.
    package func shutdown(grace: Duration = .zero) {
        inbox.close(deadline: ContinuousClock.now + grace)
        let identifier = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        guard let identifier else { return }
        if pthread_equal(identifier, pthread_self()) != 0 {
            pthread_detach(identifier)
        } else {
            let code = pthread_join(identifier, nil)
            assert(code == 0, "the client's thread was joined already (\(code))")
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

/// Content of the new thread, handed over whole, so that the loop always has exactly one owner.
private final class ThreadStart {
    let name: String
    let loop: CurlLoop

    init(name: String, loop: CurlLoop) {
        self.name = name
        self.loop = loop
    }
}

/// Blocks signals on the client's thread, above all SIGPIPE: libcurl leaves signals alone, so a write to a closed connection
/// would end the process. Faults of the thread itself stay deliverable.
private func blockSignals() {
    var signals = sigset_t()
    unsafe sigfillset(&signals)
    for fault in [SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT] { unsafe sigdelset(&signals, fault) }
    unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
}
