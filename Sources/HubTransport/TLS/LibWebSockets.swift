internal import CLibWebSockets
internal import Glibc
internal import Synchronization

/// The TLS connections of one loop: a libwebsockets context on a libuv loop. Owns every pointer and frees it in `close()`.
/// Made, used and closed on the loop's thread.
///
/// The loop waits for libuv's queue as for any other descriptor, and has the library serve what is ready.
@safe final class LibWebSockets {
    private let loop: UnsafeMutablePointer<uv_loop_t>
    private let protocols: UnsafeMutablePointer<lws_protocols>
    private let retry: UnsafeMutablePointer<lws_retry_bo_t>
    private var names: [UnsafeMutablePointer<CChar>] = unsafe []
    private var context: OpaquePointer?
    private let tls: LoopTLS
    /// The context's wake-up, one of the library's own connections. Valid until the context has ended.
    private var wakeUp: OpaquePointer?
    private let thread = pthread_self()
    /// Most turns for the handles of an ended context to close; three are needed.
    private static let closingTurnsMax = 100

    /// The library's name for our callback.
    private static let protocolName: StaticString = "tandem"

    init(_ certificate: ServerCertificate) throws(TransportError) {
        unsafe loop = .allocate(capacity: 1)
        unsafe protocols = .allocate(capacity: 2)
        unsafe retry = .allocate(capacity: 1)
        tls = LoopTLS(certificate: certificate)
        let code = unsafe uv_loop_init(loop)
        guard code == 0 else { throw TransportError("cannot start an event loop: \(unsafe String(cString: uv_strerror(code)))") }
    }

    /// Creates the context for `owner`, which must outlive this object. On the loop's thread.
    func open(for owner: Loop, capacity: Int) throws(TransportError) {
        let user = unsafe Unmanaged.passUnretained(owner).toOpaque()
        var entry = unsafe lws_protocols()
        unsafe entry.name = unsafe UnsafePointer(persistent(Self.protocolName.description))
        unsafe entry.callback = unsafe Self.callback
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
        // The TLS context gets no certificate here; the library calls `configureTLS` while it makes the context.
        unsafe info.options |= UInt64(LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT) | UInt64(LWS_SERVER_OPTION_CREATE_VHOST_SSL_CTX)
        unsafe makeContext(&info)
        guard unsafe context != nil else {
            throw TransportError(
                "libwebsockets could not start loop \(owner.index); are libwebsockets-evlib-uv and OpenSSL 3 installed?")
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
        unsafe tls.configure(context)
    }

    /// Sets the certificate of future handshakes.
    func use(_ certificate: ServerCertificate) {
        tls.use(certificate)
    }

    /// Counts of TLS handshakes.
    var handshakes: LoopCounters.Handshakes { tls.handshakes }

    /// The queue of libuv's events, to be waited for.
    var queue: Int32 { unsafe uv_backend_fd(loop) }

    /// Most milliseconds to wait before `serve` is due; -1: as long as no event arrives.
    var pause: Int32 { unsafe uv_backend_timeout(loop) }

    /// Has the library handle what is ready. Never waits.
    func serve() {
        assert(isOnThread, "the library is served on another thread")
        unsafe uv_run(loop, UV_RUN_NOWAIT)
    }

    private var isOnThread: Bool { pthread_equal(thread, pthread_self()) != 0 }

    /// Makes a connection of an accepted descriptor; nil when the library failed and closed the descriptor.
    func adopt(_ descriptor: Int32, for socket: SocketPointer) -> OpaquePointer? {
        assert(isOnThread, "descriptor \(descriptor) is adopted on another thread")
        guard let context = unsafe context, let vhost = unsafe lws_get_vhost_by_name(context, "default") else { return nil }
        return unsafe tandem_lws_adopt(vhost, descriptor, protocols.pointee.name, socket)
    }

    /// Makes the library check its time-outs again. The library plans its next wake-up only after its own I/O
    /// callbacks. Otherwise a time-out set from a timer, a mailbox or the end of a turn would wait for the loop's next
    /// traffic.
    func noticeTimeouts() {
        assert(isOnThread, "time-outs are noticed on another thread")
        if let context = unsafe context { unsafe lws_cancel_service(context) }
    }

    /// Ends the context. After the loop's last turn.
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
        for _ in 0..<Self.closingTurnsMax where unsafe uv_run(loop, UV_RUN_NOWAIT) == 0 { break }
        // A handle left on the loop would be used after it was freed. Everything is leaked in that case, at the end of
        // the process.
        guard unsafe uv_loop_close(loop) == 0 else { return assertionFailure("libwebsockets left a handle on its loop") }
        if let context = unsafe context { unsafe lws_context_destroy(context) }
        unsafe context = nil
        unsafe wakeUp = nil
        for unsafe name in unsafe names { unsafe free(name) }
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
