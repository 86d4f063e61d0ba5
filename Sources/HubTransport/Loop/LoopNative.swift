internal import CLibWebSockets
internal import Glibc
internal import Synchronization

/// The C side of one loop: libuv's loop and handles, and the libwebsockets context on it. Owns every pointer and frees
/// it in `close()`. Made on the starting thread, used on the loop's.
@safe final class LoopNative: @unchecked Sendable {
    // Guard: handed from the starting thread to the loop's thread before anything runs, and then touched by the latter
    // only.
    private let loop: UnsafeMutablePointer<uv_loop_t>
    let async: UnsafeMutablePointer<uv_async_t>
    private let prepare: UnsafeMutablePointer<uv_prepare_t>
    /// Runs once in turns in which connections end.
    private let check: UnsafeMutablePointer<uv_check_t>
    private let timer: UnsafeMutablePointer<uv_timer_t>
    /// While this handle runs, the loop does not sleep before its next turn.
    private let idle: UnsafeMutablePointer<uv_idle_t>
    private let protocols: UnsafeMutablePointer<lws_protocols>
    private let retry: UnsafeMutablePointer<lws_retry_bo_t>
    private var names: [UnsafeMutablePointer<CChar>] = unsafe []
    private var context: OpaquePointer?
    /// Nil without TLS.
    private var tls: LoopTLS?
    /// The context's wake-up, one of the library's own connections. Valid until the context has ended.
    private var wakeUp: OpaquePointer?
    /// Most turns for the handles of an ended context to close; three are needed.
    private static let closingTurnsMax = 100

    /// The library's name for our callback.
    private static let protocolName: StaticString = "tandem"

    init() throws(TransportError) {
        unsafe loop = .allocate(capacity: 1)
        unsafe async = .allocate(capacity: 1)
        unsafe prepare = .allocate(capacity: 1)
        unsafe check = .allocate(capacity: 1)
        unsafe timer = .allocate(capacity: 1)
        unsafe idle = .allocate(capacity: 1)
        unsafe protocols = .allocate(capacity: 2)
        unsafe retry = .allocate(capacity: 1)
        let code = unsafe uv_loop_init(loop)
        guard code == 0 else { throw TransportError("cannot start an event loop: \(unsafe String(cString: uv_strerror(code)))") }
        unsafe uv_async_init(loop, async) { handle in
            guard let data = unsafe handle?.pointee.data else { return }
            unsafe Unmanaged<Loop>.fromOpaque(data).takeUnretainedValue().woken()
        }
        unsafe uv_prepare_init(loop, prepare)
        unsafe uv_check_init(loop, check)
        unsafe uv_timer_init(loop, timer)
        unsafe uv_idle_init(loop, idle)
    }

    /// Creates the context for `owner`, which must outlive this object. On the loop's thread.
    func open(for owner: Loop, capacity: Int) throws(TransportError) {
        let user = unsafe Unmanaged.passUnretained(owner).toOpaque()
        unsafe async.pointee.data = unsafe user
        unsafe prepare.pointee.data = unsafe user
        unsafe check.pointee.data = unsafe user
        unsafe timer.pointee.data = unsafe user
        unsafe uv_prepare_start(prepare) { handle in
            guard let data = unsafe handle?.pointee.data else { return }
            unsafe Unmanaged<Loop>.fromOpaque(data).takeUnretainedValue().turnEnds()
        }
        unsafe uv_timer_start(
            timer,
            { handle in
                guard let data = unsafe handle?.pointee.data else { return }
                unsafe Unmanaged<Loop>.fromOpaque(data).takeUnretainedValue().ticked()
            }, LoopOptions.tickMilliseconds, LoopOptions.tickMilliseconds)

        var entry = unsafe lws_protocols()
        unsafe entry.name = unsafe UnsafePointer(persistent(Self.protocolName.description))
        unsafe entry.callback = unsafe loopCallback
        unsafe entry.per_session_data_size = MemoryLayout<LoopSession>.size
        unsafe entry.tx_packet_size = LoopOptions.writeBytesMax
        unsafe protocols.initialize(to: entry)
        unsafe (protocols + 1).initialize(to: lws_protocols())
        // A policy of zeros switches the library's liveness timers off; the idle wheel checks liveness. At every
        // incoming frame the library would insert such a timer into one sorted list, past those of all other
        // connections.
        unsafe retry.initialize(to: lws_retry_bo_t())

        var info = unsafe lws_context_creation_info()
        unsafe info.port = CONTEXT_PORT_NO_LISTEN_SERVER
        unsafe info.protocols = unsafe UnsafePointer(protocols)
        unsafe info.user = unsafe user
        unsafe info.retry_and_idle_policy = unsafe UnsafePointer(retry)
        unsafe info.options = UInt64(LWS_SERVER_OPTION_LIBUV) | UInt64(LWS_SERVER_OPTION_DISABLE_IPV6)
        // Covers TLS handshakes, and peers that send nothing after theirs. All other time limits are the loop's.
        unsafe info.timeout_secs = UInt32(owner.options.requestTimeoutSeconds + 1)
        unsafe info.pt_serv_buf_size = LoopOptions.readBytesMax + UInt32(tandem_lws_pre)
        unsafe info.fd_limit_per_thread = UInt32(capacity)
        // HTTP/2 is not supported: publishers' libraries send one request per connection at a time.
        unsafe info.alpn = unsafe UnsafePointer(persistent("http/1.1"))
        if let certificate = owner.options.certificate {
            tls = LoopTLS(certificate: certificate)
            // The TLS context gets no certificate here; the library calls `configureTLS` while it makes the context.
            unsafe info.options |= UInt64(LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT) | UInt64(LWS_SERVER_OPTION_CREATE_VHOST_SSL_CTX)
        }
        unsafe makeContext(&info)
        guard unsafe context != nil else {
            let advice = tls == nil ? "is libwebsockets-evlib-uv installed?" : "are libwebsockets-evlib-uv and OpenSSL 3 installed?"
            throw TransportError("libwebsockets could not start loop \(owner.index); \(advice)")
        }
        unsafe wakeUp = unsafe tandem_lws_wake_up(loop)
    }

    private func makeContext(_ info: inout lws_context_creation_info) {
        var loops: UnsafeMutableRawPointer? = unsafe UnsafeMutableRawPointer(loop)
        unsafe context = unsafe withUnsafeMutablePointer(to: &loops) { loops in
            unsafe info.foreign_loops = unsafe loops
            return unsafe lws_create_context(&info)
        }
    }

    /// Prepares the TLS context that the library has made; false ends the start.
    func configureTLS(_ context: OpaquePointer) -> Bool {
        unsafe tls?.configure(context) ?? false
    }

    /// Sets the certificate of future handshakes. No effect without TLS.
    func use(_ certificate: ServerCertificate) {
        tls?.use(certificate)
    }

    /// Counts of TLS handshakes; zeros without TLS.
    var handshakes: LoopCounters.Handshakes { tls?.handshakes ?? LoopCounters.Handshakes() }

    /// Whether the caller is on the thread of the loop that `open` was given: this object is nobody else's from then on.
    private var isOnThread: Bool {
        unsafe async.pointee.data.map { unsafe Unmanaged<Loop>.fromOpaque($0).takeUnretainedValue().isOnThread } ?? false
    }

    /// Makes a connection of an accepted descriptor; nil when the library failed and closed the descriptor.
    func adopt(_ descriptor: Int32) -> OpaquePointer? {
        assert(isOnThread, "descriptor \(descriptor) is adopted on another thread")
        guard let context = unsafe context, let vhost = unsafe lws_get_vhost_by_name(context, "default") else { return nil }
        return unsafe tandem_lws_adopt(vhost, descriptor, protocols.pointee.name, tls != nil)
    }

    /// Makes the library check its time-outs again. The library plans its next wake-up only after its own I/O
    /// callbacks. Otherwise a time-out set from a timer, a mailbox or the end of a turn would wait for the loop's next
    /// traffic.
    func noticeTimeouts() {
        assert(isOnThread, "time-outs are noticed on another thread")
        if let context = unsafe context { unsafe lws_cancel_service(context) }
    }

    /// Begins the next turn without waiting. Called at the end of a turn.
    func hurry() {
        assert(isOnThread, "a loop is hurried on another thread")
        unsafe uv_idle_start(idle) { handle in unsafe _ = uv_idle_stop(handle) }
    }

    /// Has the loop call `Loop.closeDescriptors` once in this turn, after the sockets were looked at and before libuv's closing
    /// callbacks. Called while the sockets are looked at.
    func closeDescriptorsSoon() {
        assert(isOnThread, "descriptors are closed on another thread")
        unsafe uv_check_start(check) { handle in
            guard let handle = unsafe handle, let data = unsafe handle.pointee.data else { return }
            unsafe uv_check_stop(handle)
            unsafe Unmanaged<Loop>.fromOpaque(data).takeUnretainedValue().closeDescriptors()
        }
    }

    func run() {
        unsafe uv_run(loop, UV_RUN_DEFAULT)
    }

    /// Leaves `run()` after the current turn.
    func leave() {
        assert(isOnThread, "a loop is left on another thread")
        unsafe uv_stop(loop)
    }

    /// Ends the context and the handles. On the loop's thread, after its last turn.
    ///
    /// On a foreign libuv loop the library is destroyed by two calls (libwebsockets' issue 1969). The first begins to
    /// close its handles, which takes turns of the loop; the second frees the rest. In between, the wake-up's
    /// descriptor, which the first call has closed, must be cleared: see `tandem_lws_forget_descriptor`.
    func close() {
        assert(isOnThread, "a loop is closed on another thread")
        if let context = unsafe context {
            unsafe lws_context_destroy(context)
            if let wakeUp = unsafe wakeUp { _ = unsafe tandem_lws_forget_descriptor(wakeUp) }
        }
        let handles = unsafe [
            UnsafeMutableRawPointer(async), UnsafeMutableRawPointer(prepare), UnsafeMutableRawPointer(check),
            UnsafeMutableRawPointer(timer), UnsafeMutableRawPointer(idle),
        ]
        for unsafe handle in unsafe handles {
            unsafe uv_close(handle.assumingMemoryBound(to: uv_handle_t.self), nil)
        }
        for _ in 0..<Self.closingTurnsMax where unsafe uv_run(loop, UV_RUN_NOWAIT) == 0 { break }
        // A handle left on the loop would be used after it was freed. Everything is leaked in that case, at the end of
        // the process.
        guard unsafe uv_loop_close(loop) == 0 else { return assertionFailure("libwebsockets left a handle on its loop") }
        if let context = unsafe context { unsafe lws_context_destroy(context) }
        unsafe context = nil
        unsafe wakeUp = nil
        tls = nil
        for unsafe name in unsafe names { unsafe free(name) }
        unsafe async.deallocate()
        unsafe prepare.deallocate()
        unsafe check.deallocate()
        unsafe timer.deallocate()
        unsafe idle.deallocate()
        unsafe protocols.deallocate()
        unsafe retry.deallocate()
        unsafe loop.deallocate()
    }

    private func persistent(_ text: String) -> UnsafeMutablePointer<CChar> {
        let copy = unsafe text.withCString { unsafe strdup($0) }
        guard let copy = unsafe copy else { preconditionFailure("out of memory") }
        unsafe names.append(copy)
        return unsafe copy
    }
}

/// The sink of libwebsockets' log: one per process, because the library has one.
package enum TransportLog {
    /// A lock that holds a function itself wraps it once more at each access.
    private struct Sink {
        var write: @Sendable (String) -> Void = { _ in }
    }

    private static let sink = Mutex(Sink())

    /// Sends errors and warnings of the library to `sink` from now on. Call once, before the first loop.
    package static func start(_ sink: @escaping @Sendable (String) -> Void) {
        self.sink.withLock { $0.write = sink }
        unsafe lws_set_log_level(LLL_ERR | LLL_WARN) { _, line in
            guard let line = unsafe line else { return }
            let text = unsafe String(cString: line)
            TransportLog.sink.withLock { $0.write(text.hasSuffix("\n") ? String(text.dropLast()) : text) }
        }
    }
}
