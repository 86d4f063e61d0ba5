internal import CLibWebSockets
internal import Glibc
internal import HubCore
internal import Synchronization

/// The thread behind the listening socket: accepts, waits for the first words, and hands each descriptor to the loop that holds fewest.
///
/// Accepting here and not in the loops balances them exactly, refuses before TLS costs anything, and is necessary: contexts
/// of Debian's libwebsockets cannot share a port.
package final class Acceptor: Sendable {
    /// The port in use; the system's choice when 0 was asked for.
    package let port: Int
    private let socket: ListeningSocket
    private let wakeWrite: Int32
    private let thread: Mutex<ServiceThread?>
    private let counts: Counts

    /// How long accepting pauses when the process is out of descriptors, in milliseconds.
    static let exhaustedPauseMilliseconds: Int32 = 100
    /// Connections accepted before those who have spoken meanwhile are looked at again.
    private static let acceptedAtOnceMax = 64
    private static let eventsMax = 256
    /// Descriptors that newcomers do not get, so that the hub goes on when they have all others: the store's readers, gateways, webhooks,
    /// and files that are read again. A quarter where there are few.
    static let descriptorsKeptMax = 64

    /// Starts accepting; whoever came before waits in the socket's backlog.
    /// - Parameters:
    ///   - socket: the acceptor's from now on, which closes it.
    ///   - quietSeconds: how long a peer may say nothing at first.
    ///   - proxy: nil: nobody speaks the PROXY protocol. Otherwise each connection has to begin with it, and the time for its header and
    ///     the first words together is the quiet time.
    ///   - counts: what has been accepted and what not is added there.
    package init(
        _ socket: ListeningSocket, loops: [LoopHandle], quietSeconds: Int, proxy: ProxyDoor? = nil, counts: Counts = Counts()
    ) throws(TransportError) {
        let listener = socket.descriptor
        var pipe: [Int32] = [0, 0]
        guard unsafe Glibc.pipe(&pipe) == 0 else {
            let error = TransportError(system: "cannot make a pipe")
            socket.close()
            throw error
        }
        let epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        let wakeRead = pipe[0]
        self.counts = counts
        self.socket = socket
        port = socket.port
        wakeWrite = pipe[1]
        do throws(TransportError) {
            guard Self.watch(listener, by: epoll), Self.watch(wakeRead, by: epoll) else { throw TransportError(system: "cannot watch the listening socket") }
            thread = Mutex(
                try ServiceThread(name: "acceptor") {
                    var reception = Reception(
                        listener: listener, wake: wakeRead, epoll: epoll, quietMilliseconds: Int64(quietSeconds) * 1000, loops: loops, proxy: proxy,
                        counts: counts)
                    reception.run()
                    Glibc.close(epoll)
                    Glibc.close(wakeRead)
                })
        } catch {
            for descriptor in [epoll] + pipe where descriptor >= 0 { Glibc.close(descriptor) }
            socket.close()
            throw error
        }
    }

    private static func watch(_ descriptor: Int32, by epoll: Int32) -> Bool {
        var event = unsafe epoll_event(events: EPOLLIN.rawValue, data: epoll_data(fd: descriptor))
        return unsafe epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0
    }

    /// Stops accepting and closes the listening socket; connections already handed over are not touched. Safe to call again.
    package func stop() {
        guard let thread = thread.withLock({ thread in
            defer { thread = nil }
            return thread
        }) else { return }
        var byte: UInt8 = 0
        _ = unsafe write(wakeWrite, &byte, 1)
        thread.join()
        socket.close()
        Glibc.close(wakeWrite)
    }

    /// Connections that were accepted and have said nothing yet. Any thread.
    package var waitingCount: Int { counts.waitingCount }

    /// What the acceptor has done since it began, and holds. Its thread writes, any thread reads.
    package final class Counts: Sendable {
        fileprivate let accepted = Atomic<UInt64>(0)
        fileprivate let refused = Atomic<UInt64>(0)
        fileprivate let waiting = Atomic<Int>(0)

        package init() {}

        package var acceptedCount: UInt64 { accepted.load(ordering: .relaxed) }
        /// Connections turned away because the process was out of descriptors or memory.
        package var refusedCount: UInt64 { refused.load(ordering: .relaxed) }
        /// Connections that have said nothing yet.
        package var waitingCount: Int { waiting.load(ordering: .relaxed) }
    }

    /// What the acceptor's thread works with.
    private struct Reception: ~Copyable {
        let listener: Int32
        let wake: Int32
        let epoll: Int32
        let loops: [LoopHandle]
        let proxy: ProxyDoor?
        let counts: Counts
        var vestibule: Vestibule
        // Kept even apart from each other: a hundred publishers are more work than a hundred idle sockets.
        var requests = Placement()
        var others = Placement()
        /// Numbers from this on are kept for the hub itself.
        let descriptorsEnd: Int32
        /// Given up for a moment when descriptors run out, so that the waiting peer can be accepted and told to go.
        var spare: Int32

        init(
            listener: Int32, wake: Int32, epoll: Int32, quietMilliseconds: Int64, loops: [LoopHandle], proxy: ProxyDoor?, counts: Counts
        ) {
            self.listener = listener
            self.wake = wake
            self.epoll = epoll
            self.loops = loops
            self.proxy = proxy
            self.counts = counts
            vestibule = Vestibule(epoll: epoll, quietMilliseconds: quietMilliseconds)
            let limit = LoopGroup.descriptorLimit()
            descriptorsEnd = Int32(clamping: limit - min(descriptorsKeptMax, limit / 4))
            unsafe spare = open("/dev/null", O_RDONLY | O_CLOEXEC)
        }

        mutating func run() {
            let events = UnsafeMutableBufferPointer<epoll_event>.allocate(capacity: eventsMax)
            defer { unsafe events.deallocate() }
            while true {
                let deadline = vestibule.closeQuiet(now: Self.now)
                counts.waiting.store(vestibule.count, ordering: .relaxed)
                let pause = deadline.map { Int32(clamping: max(0, $0 - Self.now)) } ?? -1
                let found = unsafe epoll_wait(epoll, events.baseAddress, Int32(eventsMax), pause)
                var isListenerReady = false
                for index in 0..<max(0, Int(found)) {
                    let descriptor = unsafe events[index].data.fd
                    if descriptor == wake {
                        vestibule.closeAll()
                        Glibc.close(spare)
                        return
                    }
                    if descriptor == listener { isListenerReady = true } else { unsafe spoke(descriptor, isEnd: events[index].events & EPOLLRDHUP.rawValue != 0) }
                }
                if isListenerReady { accept() }
            }
        }

        private static var now: Int64 {
            var time = timespec()
            unsafe clock_gettime(CLOCK_MONOTONIC, &time)
            return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
        }

        private mutating func accept() {
            let now = Self.now
            for _ in 0..<acceptedAtOnceMax {
                let descriptor = tandem_accept(listener)
                // The system gives out the lowest number that is free, so that below this one none is.
                if descriptor >= descriptorsEnd {
                    Glibc.close(descriptor)
                    counts.refused.add(1, ordering: .relaxed)
                    continue
                }
                if descriptor >= 0 {
                    var on: Int32 = 1
                    unsafe setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
                    counts.accepted.add(1, ordering: .relaxed)
                    greet(descriptor, now: now)
                    continue
                }
                switch errno {
                case EMFILE, ENFILE, ENOBUFS, ENOMEM: return refuse()
                case EINTR, ECONNABORTED: continue
                default: return
                }
            }
        }

        private mutating func greet(_ descriptor: Int32, now: Int64) {
            var address: IPAddress?
            if let proxy {
                switch proxy.admits(peerAddress(descriptor)) ? ProxyHeader.take(descriptor) : .invalid {
                case .incomplete where vestibule.admit(descriptor, now: now, needsHeader: true): return
                case .incomplete, .invalid:
                    Glibc.close(descriptor)
                    return
                case .complete(_, let found): address = found
                }
            }
            let words = FirstWords.peek(descriptor)
            if words != .none || !vestibule.admit(descriptor, now: now, address: address) { place(descriptor, words, address) }
        }

        /// - Parameter isEnd: nothing more will come.
        private mutating func spoke(_ descriptor: Int32, isEnd: Bool) {
            guard vestibule.contains(descriptor) else { return }
            if vestibule.needsHeader(descriptor) {
                switch ProxyHeader.take(descriptor) {
                case .incomplete where !isEnd: return
                case .incomplete, .invalid:
                    _ = vestibule.release(descriptor)
                    Glibc.close(descriptor)
                    return
                case .complete(_, let address): vestibule.tookHeader(descriptor, address)
                }
            }
            let words = FirstWords.peek(descriptor)
            if words != .none { place(descriptor, words, vestibule.release(descriptor)) }
        }

        private mutating func place(_ descriptor: Int32, _ words: FirstWords, _ address: IPAddress?) {
            switch words {
            case .ended: Glibc.close(descriptor)
            case .request: loops[requests.next(loads: loops.map(\.requestLoad))].hand(over: descriptor, isRequest: true, address: address)
            case .other, .none: loops[others.next(loads: loops.map { $0.load - $0.requestLoad })].hand(over: descriptor, address: address)
            }
        }

        private mutating func refuse() {
            Glibc.close(spare)
            let refused = Glibc.accept(listener, nil, nil)
            if refused >= 0 {
                Glibc.close(refused)
                counts.refused.add(1, ordering: .relaxed)
            }
            unsafe spare = open("/dev/null", O_RDONLY | O_CLOEXEC)
            _ = poll(nil, 0, exhaustedPauseMilliseconds)
        }
    }
}
