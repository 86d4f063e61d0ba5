internal import CLibCurl
internal import Glibc
internal import Synchronization

/// An HTTP client: one libcurl multi handle, one thread that owns it, one bounded queue in front.
///
/// Callable from any thread. Connections are shared by all calls to the same host, so one client should carry one
/// credential only (APNs binds a connection to the first team it sees). Ends with `shutdown`, or when released.
package final class CurlMulti: Sendable {
    private let inbox: CurlInbox
    private let clearText: CurlOptions.ClearText
    private let origins = KnownOrigins()
    /// Nil once somebody joins or has joined the thread.
    private let thread: Mutex<pthread_t?>

    /// Starts the thread.
    /// - Throws: when libcurl or the system cannot provide what is needed; nothing is left behind.
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
            // Without its thread the loop runs here once, which frees everything it holds.
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
    /// It runs on the client's thread, between other calls, so it must be quick; it may submit further calls. For a call
    /// that was refused (invalid, queue full, shut down) it runs on a thread of Swift's pool instead, never on the
    /// caller's: whoever submits under a lock cannot lock up.
    package func submit(_ call: HTTPCall, completion: @escaping HTTPCompletion) {
        let refusal = call.fault(clearText: clearText, origins: origins).map(HTTPClientError.invalidCall) ?? inbox.add(call, completion)
        if let refusal { Task { completion(.failure(refusal)) } }
    }

    /// Lets the calls in flight end, then gives up every connection and opens new ones for what comes next.
    ///
    /// At most once in ten seconds; further wishes within them are dropped.
    package func renewConnections() { inbox.askForRenewal() }

    package var counters: CurlCounters { inbox.counters }

    /// Takes no more calls, gives those already taken `grace` to end, fails the rest with `HTTPClientError.Reason.shutDown`
    /// and waits for the thread.
    ///
    /// Repeating it is harmless. From within a completion it only asks for the end and returns, since a thread cannot
    /// wait for itself.
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
            pthread_join(identifier, nil)
        }
    }
}

/// What the new thread gets: handed over whole, so the loop has one owner at any time.
private final class ThreadStart {
    let name: String
    let loop: CurlLoop

    init(name: String, loop: CurlLoop) {
        self.name = name
        self.loop = loop
    }
}

/// Keeps signals away from the client's thread. SIGPIPE above all: libcurl is told not to touch signals, so writing to
/// a connection that the peer has closed would end the process. Faults of the thread itself stay deliverable.
private func blockSignals() {
    var signals = sigset_t()
    unsafe sigfillset(&signals)
    for fault in [SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT] { unsafe sigdelset(&signals, fault) }
    unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
}
