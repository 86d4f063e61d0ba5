internal import Glibc
internal import HubCore
internal import Synchronization

/// The loops of one server and their threads: makes, starts and ends them.
package final class LoopGroup: Sendable {
    /// A handle for each loop, by its index.
    package let handles: [LoopHandle]
    private let pollers: [Poller]
    private let options: LoopOptions
    private let bodies: BodyBudget
    private let threads = Mutex<[ServiceThread]>([])

    /// Makes the loops without running them, so that other parts can be built with their handles.
    package init(count: Int, options: LoopOptions) throws(TransportError) {
        precondition((1...ConnectionID.loopsMax).contains(count), "\(count) loops")
        var handles: [LoopHandle] = []
        var pollers: [Poller] = []
        for index in 0..<count {
            let (poller, waker) = (try Poller(), try LoopWaker())
            try poller.watch(waker.descriptor, once: true)
            pollers.append(poller)
            handles.append(LoopHandle(index: index, waker: waker))
        }
        self.handles = handles
        self.pollers = pollers
        self.options = options
        bodies = BodyBudget(bytesMax: options.unfinishedBodiesBytesMax, bytesPerPeerMax: options.unfinishedBodiesBytesPerAddressMax)
    }

    /// Bytes of incomplete request bodies. Any thread.
    package var unfinishedBodiesBytes: Int { bodies.bytes }

    /// Starts every loop with the delegate that `makeDelegate` returns on the loop's thread. Returns when all loops
    /// run. If one fails, the running ones are ended. Call once.
    package func start(makeDelegate: @escaping @Sendable (Loop) -> any LoopDelegate) throws(TransportError) {
        let limit = Self.descriptorLimit()
        let capacity = min(options.connectionsMax ?? limit, limit)
        for (handle, poller) in zip(handles, pollers) {
            let started = StartSignal()
            let (options, bodies) = (options, bodies)
            let thread = try ServiceThread(name: "loop \(handle.index)") {
                Self.run(handle.index, options, handle, poller, bodies, capacity, makeDelegate, started)
            }
            threads.withLock { $0.append(thread) }
            if let failure = started.wait() {
                stop()
                throw failure
            }
        }
    }

    private static func run(
        _ index: Int, _ options: LoopOptions, _ handle: LoopHandle, _ poller: Poller, _ bodies: BodyBudget, _ capacity: Int,
        _ makeDelegate: @Sendable (Loop) -> any LoopDelegate, _ started: StartSignal
    ) {
        let loop = Loop(index: index, options: options, handle: handle, poller: poller, bodies: bodies, capacity: capacity)
        do {
            loop.delegate = makeDelegate(loop)
            try loop.openTLS(capacity: capacity)
            started.signal(nil)
        } catch {
            started.signal(error)
            return
        }
        loop.run()
        loop.library?.close()
        loop.freeEnded()
        assert(loop.isEmpty, "loop \(index) ends with \(loop.table.count) connections and \(loop.queuedMemory.bytes) bytes for them")
        loop.delegate = nil
    }

    /// Answers TLS handshakes with this certificate from now on; established connections are not affected. Any thread.
    /// No effect without TLS.
    package func replace(_ certificate: ServerCertificate) {
        for handle in handles { handle.replace(certificate) }
    }

    /// Ends every connection without a close frame, then the loops. Returns when their threads have ended; safe to call
    /// again.
    package func stop() {
        for handle in handles { handle.stop() }
        let ended = threads.withLock { threads in
            defer { threads = [] }
            return threads
        }
        for thread in ended { thread.join() }
    }

    /// Most descriptors of the process: libwebsockets makes a table of as many per context.
    static let descriptorsMax: rlim_t = 1 << 20

    /// The process's descriptor limit, after setting the soft limit to the hard one, or to `most` if that is less.
    ///
    /// The soft limit may not exceed the library's tables. Otherwise the library would search them at every event of a connection.
    package static func descriptorLimit() -> Int { descriptorLimit(most: descriptorsMax) }

    static func descriptorLimit(most: rlim_t) -> Int {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
        var wanted = limit
        wanted.rlim_cur = min(limit.rlim_max, most)
        if wanted.rlim_cur != limit.rlim_cur, unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &wanted) == 0 { limit = wanted }
        return Int(clamping: min(limit.rlim_cur, most))
    }
}

/// A starting thread's signal of success or failure to a waiting one.
@safe final class StartSignal: @unchecked Sendable {
    // Guard: the semaphore orders the write of `failure` before its read.
    private let semaphore: UnsafeMutablePointer<sem_t>
    private var failure: TransportError?

    init() {
        unsafe semaphore = .allocate(capacity: 1)
        unsafe sem_init(semaphore, 0, 0)
    }

    deinit {
        unsafe sem_destroy(semaphore)
        unsafe semaphore.deallocate()
    }

    func signal(_ failure: TransportError?) {
        self.failure = failure
        let code = unsafe sem_post(semaphore)
        assert(code == 0, "a thread that waits for the start was not told")
    }

    func wait() -> TransportError? {
        while unsafe sem_wait(semaphore) != 0 {}
        return failure
    }
}
