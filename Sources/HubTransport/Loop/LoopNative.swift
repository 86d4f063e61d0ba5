internal import CLibWebSockets
internal import Glibc
internal import Synchronization

/// The C side of one loop: libuv's loop and handles, and the libwebsockets context on it. Owns every pointer it hands out
/// and ends them in `close()`; made on the starting thread, used on the loop's.
@safe final class LoopNative: @unchecked Sendable {
    // Guard: handed from the starting thread to the loop's thread before anything runs, and touched by that one only.
    private let loop: UnsafeMutablePointer<uv_loop_t>
    let async: UnsafeMutablePointer<uv_async_t>
    private let prepare: UnsafeMutablePointer<uv_prepare_t>
    private let timer: UnsafeMutablePointer<uv_timer_t>
    /// While it runs, the loop does not sleep in front of its next turn.
    private let idle: UnsafeMutablePointer<uv_idle_t>
    private let protocols: UnsafeMutablePointer<lws_protocols>
    private let retry: UnsafeMutablePointer<lws_retry_bo_t>
    private var names: [UnsafeMutablePointer<CChar>] = unsafe []
    private var context: OpaquePointer?
    /// Nil: plain.
    private var tls: LoopTLS?
    /// What wakes the context up: to the library a connection of its own. Valid until the context has ended.
    private var wakeUp: OpaquePointer?
    /// Turns that the handles of an ended context get to close in; they need three.
    private static let closingTurnsMax = 100

    /// The library's name for how connections are called back.
    private static let protocolName: StaticString = "tandem"

    init() throws(TransportError) {
        unsafe loop = .allocate(capacity: 1)
        unsafe async = .allocate(capacity: 1)
        unsafe prepare = .allocate(capacity: 1)
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
        unsafe uv_timer_init(loop, timer)
        unsafe uv_idle_init(loop, idle)
    }

    /// Creates the context for `owner`, which must outlive this object. On the loop's thread.
    func open(for owner: Loop, capacity: Int) throws(TransportError) {
        let user = unsafe Unmanaged.passUnretained(owner).toOpaque()
        unsafe async.pointee.data = unsafe user
        unsafe prepare.pointee.data = unsafe user
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
        // Off, by a policy of zeros: liveness is the idle wheel's. However far away such a timer is, the library puts it into one sorted
        // list at every frame that comes in, and walks past those of all other connections.
        unsafe retry.initialize(to: lws_retry_bo_t())

        var info = unsafe lws_context_creation_info()
        unsafe info.port = CONTEXT_PORT_NO_LISTEN_SERVER
        unsafe info.protocols = unsafe UnsafePointer(protocols)
        unsafe info.user = unsafe user
        unsafe info.retry_and_idle_policy = unsafe UnsafePointer(retry)
        unsafe info.options = UInt64(LWS_SERVER_OPTION_LIBUV) | UInt64(LWS_SERVER_OPTION_DISABLE_IPV6)
        // For TLS handshakes, and peers that say nothing behind theirs. All other time limits are the loop's.
        unsafe info.timeout_secs = UInt32(owner.options.requestTimeoutSeconds + 1)
        unsafe info.pt_serv_buf_size = LoopOptions.readBytesMax + UInt32(tandem_lws_pre)
        unsafe info.fd_limit_per_thread = UInt32(capacity)
        // Nothing here speaks HTTP/2: one request per connection at a time is what publishers' libraries do.
        unsafe info.alpn = unsafe UnsafePointer(persistent("http/1.1"))
        if let certificate = owner.options.certificate {
            tls = LoopTLS(certificate: certificate)
            // A TLS context without a certificate of its own: `configureTLS` is called for it while the library makes it.
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

    /// Handshakes that begin from now on get this certificate. Nothing happens on a plain loop.
    func use(_ certificate: ServerCertificate) {
        tls?.use(certificate)
    }

    /// Of a plain loop: none.
    var handshakes: LoopFigures.Handshakes { tls?.handshakes ?? LoopFigures.Handshakes() }

    /// Makes a connection of an accepted descriptor; nil when the library could not, which then closed it.
    func adopt(_ descriptor: Int32) -> OpaquePointer? {
        guard let context = unsafe context, let vhost = unsafe lws_get_vhost_by_name(context, "default") else { return nil }
        return unsafe tandem_lws_adopt(vhost, descriptor, protocols.pointee.name, tls != nil)
    }

    /// Makes the library look at its time-outs again. It plans its next wake-up only behind its own I/O callbacks, so one that
    /// was set from a timer, a mailbox or the end of a turn would wait for the next traffic of anybody on this loop.
    func noticeTimeouts() {
        if let context = unsafe context { unsafe lws_cancel_service(context) }
    }

    /// The next turn begins without waiting for anything. From the end of a turn.
    func hurry() {
        unsafe uv_idle_start(idle) { handle in unsafe _ = uv_idle_stop(handle) }
    }

    func run() {
        unsafe uv_run(loop, UV_RUN_DEFAULT)
    }

    /// Leaves `run()` after the current turn.
    func leave() {
        unsafe uv_stop(loop)
    }

    /// Ends the context and the handles. On the loop's thread, with nothing left to tell anybody.
    ///
    /// On a foreign libuv loop the library is asked twice (libwebsockets' issue 1969): the first call begins to close what is on the
    /// loop, which takes turns of it; the second frees the rest. In between the number of its wake-up, which the first call has closed,
    /// has to be taken out of its memory: see `tandem_lws_forget_descriptor`.
    func close() {
        if let context = unsafe context {
            unsafe lws_context_destroy(context)
            if let wakeUp = unsafe wakeUp { unsafe tandem_lws_forget_descriptor(wakeUp) }
        }
        let handles = unsafe [
            UnsafeMutableRawPointer(async), UnsafeMutableRawPointer(prepare), UnsafeMutableRawPointer(timer), UnsafeMutableRawPointer(idle),
        ]
        for unsafe handle in unsafe handles {
            unsafe uv_close(handle.assumingMemoryBound(to: uv_handle_t.self), nil)
        }
        for _ in 0..<Self.closingTurnsMax where unsafe uv_run(loop, UV_RUN_NOWAIT) == 0 { break }
        // A handle that stayed on the loop would be used after it was freed: then all of it is left alone, at the end of a process.
        guard unsafe uv_loop_close(loop) == 0 else { return assertionFailure("libwebsockets left a handle on its loop") }
        if let context = unsafe context { unsafe lws_context_destroy(context) }
        unsafe context = nil
        unsafe wakeUp = nil
        tls = nil
        for unsafe name in unsafe names { unsafe free(name) }
        unsafe async.deallocate()
        unsafe prepare.deallocate()
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

/// Where libwebsockets' own complaints go: one sink for the process, because the library has one.
package enum TransportLog {
    private static let sink = Mutex<(@Sendable (String) -> Void)?>(nil)

    /// Sends errors and warnings of the library to `sink` from now on. Call once, before the first loop.
    package static func start(_ sink: @escaping @Sendable (String) -> Void) {
        self.sink.withLock { $0 = sink }
        unsafe lws_set_log_level(LLL_ERR | LLL_WARN) { _, line in
            guard let line = unsafe line else { return }
            let text = unsafe String(cString: line)
            TransportLog.sink.withLock { $0?(text.hasSuffix("\n") ? String(text.dropLast()) : text) }
        }
    }
}
