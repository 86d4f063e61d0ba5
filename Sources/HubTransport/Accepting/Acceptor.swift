internal import CLibWebSockets
internal import Glibc
internal import HubCore
internal import Synchronization

/// The thread of the listening socket. Accepts, waits for the first bytes, and hands each descriptor to the loop with
/// the fewest connections.
///
/// Accepting on one thread balances the loops exactly, and refuses before TLS costs anything.
package final class Acceptor: Sendable {
    /// The port in use; chosen by the system for port 0.
    package let port: Int
    private let socket: ListeningSocket
    private let wakeWrite: Int32
    private let thread: Mutex<ServiceThread?>
    private let counts: Counts

    /// Pause of accepting when the process is out of descriptors, in milliseconds.
    static let exhaustedPauseMilliseconds: Int32 = 100
    /// Connections accepted before waiting ones are checked for first bytes again.
    private static let acceptedAtOnceMax = 64
    private static let eventsMax = 256
    /// Descriptors reserved for the hub itself: the store's readers, gateways, webhooks, and reloaded files. At most a
    /// quarter of the process's limit is reserved.
    static let descriptorsKeptMax = 64

    /// Starts accepting; earlier peers wait in the socket's backlog.
    /// - Parameters:
    ///   - socket: owned, and closed, by the acceptor from now on.
    ///   - quietSeconds: how long a new peer may send nothing.
    ///   - proxy: nil without the PROXY protocol. Otherwise each connection must begin with a PROXY header, and the
    ///     quiet time covers header and first bytes together.
    ///   - counts: gets the numbers of accepted and refused connections.
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
            guard Self.watch(listener, by: epoll), Self.watch(wakeRead, by: epoll) else {
                throw TransportError(system: "cannot watch the listening socket")
            }
            thread = Mutex(
                try ServiceThread(name: "acceptor") {
                    var reception = Reception(
                        listener: listener, wake: wakeRead, epoll: epoll, quietMilliseconds: Int64(quietSeconds) * 1000, loops: loops,
                        proxy: proxy,
                        counts: counts)
                    reception.run()
                    Descriptor.close(epoll)
                    Descriptor.close(wakeRead)
                })
        } catch {
            for descriptor in [epoll] + pipe where descriptor >= 0 { Descriptor.close(descriptor) }
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
        guard
            let thread = thread.withLock({ thread in
                defer { thread = nil }
                return thread
            })
        else { return }
        var byte: UInt8 = 0
        _ = unsafe write(wakeWrite, &byte, 1)
        thread.join()
        socket.close()
        Descriptor.close(wakeWrite)
    }

    /// Accepted connections that have sent nothing yet. Any thread.
    package var waitingCount: Int { counts.waitingCount }

    /// Counters of the acceptor since its start. The acceptor's thread writes, any thread reads.
    package final class Counts: Sendable {
        fileprivate let accepted = Atomic<UInt64>(0)
        fileprivate let refused = Atomic<UInt64>(0)
        fileprivate let waiting = Atomic<Int>(0)

        /// No connections yet.
        package init() {}

        /// Connections accepted so far.
        package var acceptedCount: UInt64 { accepted.load(ordering: .relaxed) }
        /// Connections turned away because the process was out of descriptors or memory.
        package var refusedCount: UInt64 { refused.load(ordering: .relaxed) }
        /// Connections that have sent nothing yet.
        package var waitingCount: Int { waiting.load(ordering: .relaxed) }
    }

    /// The state of the acceptor's thread.
    private struct Reception: ~Copyable {
        let listener: Int32
        let wake: Int32
        let epoll: Int32
        let loops: [LoopHandle]
        let proxy: ProxyDoor?
        let counts: Counts
        var lobby: Lobby
        // Balanced separately, because a hundred publishers are more work than a hundred idle sockets.
        var requests = Placement()
        var others = Placement()
        /// Descriptor numbers from here on are reserved for the hub itself.
        let descriptorsEnd: Int32
        /// A spare descriptor, released for a moment when descriptors run out, so that a waiting peer can be accepted
        /// and closed.
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
            lobby = Lobby(epoll: epoll, quietMilliseconds: quietMilliseconds)
            let limit = LoopGroup.descriptorLimit()
            descriptorsEnd = Int32(clamping: limit - min(descriptorsKeptMax, limit / 4))
            unsafe spare = open("/dev/null", O_RDONLY | O_CLOEXEC)
        }

        mutating func run() {
            let events = UnsafeMutableBufferPointer<epoll_event>.allocate(capacity: eventsMax)
            defer { unsafe events.deallocate() }
            while true {
                let deadline = lobby.closeQuiet(now: Self.now)
                counts.waiting.store(lobby.count, ordering: .relaxed)
                let pause = deadline.map { Int32(clamping: max(0, $0 - Self.now)) } ?? -1
                let found = unsafe epoll_wait(epoll, events.baseAddress, Int32(eventsMax), pause)
                var isListenerReady = false
                for index in 0..<max(0, Int(found)) {
                    let descriptor = unsafe events[index].data.fd
                    if descriptor == wake {
                        lobby.closeAll()
                        if spare >= 0 { Descriptor.close(spare) }
                        return
                    }
                    if descriptor == listener {
                        isListenerReady = true
                    } else {
                        unsafe spoke(descriptor, isEnd: events[index].events & EPOLLRDHUP.rawValue != 0)
                    }
                }
                if isListenerReady { accept() }
            }
        }

        private static var now: Int64 {
            var time = timespec()
            unsafe clock_gettime(CLOCK_MONOTONIC, &time)
            return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
        }

        /// Accepts before it looks for first bytes: peers send them meanwhile, and need not wait in the lobby.
        private mutating func accept() {
            var arrived: [Int32] = []
            let isExhausted = acceptWaiting(into: &arrived)
            let now = Self.now
            for descriptor in arrived { greet(descriptor, now: now) }
            if isExhausted { refuse() }
        }

        /// Returns whether the process has no room for another descriptor.
        private mutating func acceptWaiting(into arrived: inout [Int32]) -> Bool {
            for _ in 0..<acceptedAtOnceMax {
                let descriptor = tandem_accept(listener)
                // The system returns the lowest free number, so no lower one is free.
                if descriptor >= descriptorsEnd {
                    Descriptor.close(descriptor)
                    counts.refused.add(1, ordering: .relaxed)
                    continue
                }
                if descriptor >= 0 {
                    assert(!lobby.contains(descriptor), "descriptor \(descriptor) waits, but the kernel has given it away again")
                    counts.accepted.add(1, ordering: .relaxed)
                    arrived.append(descriptor)
                    continue
                }
                switch errno {
                case EMFILE, ENFILE, ENOBUFS, ENOMEM: return true
                case EINTR, ECONNABORTED: continue
                default: return false
                }
            }
            return false
        }

        private mutating func greet(_ descriptor: Int32, now: Int64) {
            var address: IPAddress?
            if let proxy {
                switch proxy.admits(peerAddress(descriptor)) ? ProxyHeader.take(descriptor) : .invalid {
                case .incomplete where lobby.admit(descriptor, now: now, needsHeader: true): return
                case .incomplete, .invalid:
                    Descriptor.close(descriptor)
                    return
                case .complete(_, let found): address = found
                }
            }
            let words = FirstWords.peek(descriptor)
            if words != .none || !lobby.admit(descriptor, now: now, address: address) { place(descriptor, words, address) }
        }

        /// - Parameter isEnd: the peer has finished sending.
        private mutating func spoke(_ descriptor: Int32, isEnd: Bool) {
            guard lobby.contains(descriptor) else { return }
            if lobby.needsHeader(descriptor) {
                switch ProxyHeader.take(descriptor) {
                case .incomplete where !isEnd: return
                case .incomplete, .invalid:
                    _ = lobby.release(descriptor)
                    Descriptor.close(descriptor)
                    return
                case .complete(_, let address): lobby.tookHeader(descriptor, address)
                }
            }
            let words = FirstWords.peek(descriptor)
            if words != .none { place(descriptor, words, lobby.release(descriptor)) }
        }

        private mutating func place(_ descriptor: Int32, _ words: FirstWords, _ address: IPAddress?) {
            assert(!lobby.contains(descriptor), "descriptor \(descriptor) is placed and waits still")
            switch words {
            case .ended: Descriptor.close(descriptor)
            case .request: loops[requests.next(loads: loops.map(\.requestLoad))].hand(over: descriptor, isRequest: true, address: address)
            case .other, .none: loops[others.next(loads: loops.map { $0.load - $0.requestLoad })].hand(over: descriptor, address: address)
            }
        }

        private mutating func refuse() {
            if spare >= 0 { Descriptor.close(spare) }
            let refused = Glibc.accept(listener, nil, nil)
            if refused >= 0 {
                Descriptor.close(refused)
                counts.refused.add(1, ordering: .relaxed)
            }
            unsafe spare = open("/dev/null", O_RDONLY | O_CLOEXEC)
            _ = poll(nil, 0, exhaustedPauseMilliseconds)
        }
    }
}
