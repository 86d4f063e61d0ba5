internal import CLibWebSockets
internal import Glibc

/// The kernel's event queue of one loop (epoll(7)): plain sockets, the loop's waker, and with TLS libuv's queue.
///
/// Level-triggered: bytes that a turn leaves in the kernel are reported again. A socket takes two system calls here, one at its beginning
/// and one at its end. One that reads slowly, or asks before its answer, takes more.
@safe final class Poller: @unchecked Sendable {
    // Guard: made on the starting thread, handed to the loop's before anything runs, and then touched by the latter only.
    private let queue: Int32
    private let events: UnsafeMutableBufferPointer<epoll_event>

    /// The events of a socket that the queue does not know.
    static let unwatched = UInt32.max
    static let incoming = EPOLLIN.rawValue
    static let outgoing = EPOLLOUT.rawValue
    /// Most events per wait.
    private static let eventsMax = 512

    /// One reported event: its owner, and the kernel's flags.
    @safe struct Event {
        /// Nil: the waker, or libuv's queue.
        let socket: SocketPointer?
        let flags: UInt32

        var mayRead: Bool { flags & Poller.incoming != 0 }
        var mayWrite: Bool { flags & Poller.outgoing != 0 }
        /// The connection has failed, or both sides have ended it.
        var isOver: Bool { flags & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0 }
    }

    init() throws(TransportError) {
        queue = epoll_create1(Int32(EPOLL_CLOEXEC))
        unsafe events = .allocate(capacity: Self.eventsMax)
        guard queue >= 0 else { throw TransportError(system: "cannot start an event loop") }
    }

    deinit {
        if queue >= 0 { Descriptor.close(queue) }
        unsafe events.deallocate()
    }

    /// Reports each event of a descriptor that belongs to no socket, without an owner.
    /// - Parameter once: a descriptor that stays readable is not reported again until more arrives.
    func watch(_ descriptor: Int32, once: Bool) throws(TransportError) {
        var event = unsafe epoll_event(events: Self.incoming | (once ? EPOLLET.rawValue : 0), data: epoll_data(ptr: nil))
        guard unsafe epoll_ctl(queue, EPOLL_CTL_ADD, descriptor, &event) == 0 else {
            throw TransportError(system: "cannot watch descriptor \(descriptor)")
        }
    }

    /// Watches a socket for what it wants now. False when the kernel has no room for another one.
    func watch(_ socket: SocketPointer) -> Bool {
        let wanted = unsafe Self.events(of: socket.pointee)
        let isKnown = unsafe socket.pointee.watched != Self.unwatched
        unsafe socket.pointee.watched = wanted
        var event = unsafe epoll_event(events: wanted, data: epoll_data(ptr: socket))
        return unsafe epoll_ctl(queue, isKnown ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket.pointee.descriptor, &event) == 0
    }

    /// Reports nothing more of a socket, which is about to be closed. Closing is not enough. A child process that is being started holds
    /// all descriptors for a moment, and the kernel would go on naming freed memory.
    func forget(_ socket: SocketPointer) {
        if unsafe socket.pointee.watched != Self.unwatched { unsafe epoll_ctl(queue, EPOLL_CTL_DEL, socket.pointee.descriptor, nil) }
    }

    /// The events that a socket wants now.
    static func events(of socket: Socket) -> UInt32 { (socket.isReading ? incoming : 0) | (socket.wantsWritable ? outgoing : 0) }

    /// Waits for events; 0 returns at once. Returns the number of events.
    func wait(milliseconds: Int32) -> Int {
        var found = unsafe epoll_wait(queue, events.baseAddress, Int32(Self.eventsMax), milliseconds)
        // A signal ends the wait, also where events have come. A turn without them would write what they could have shared.
        while found < 0, errno == EINTR { found = unsafe epoll_wait(queue, events.baseAddress, Int32(Self.eventsMax), 0) }
        precondition(found >= 0, "an event loop lost its queue")
        return Int(found)
    }

    /// An event of the last wait.
    subscript(index: Int) -> Event {
        let event = unsafe events[index]
        return unsafe Event(socket: event.data.ptr?.assumingMemoryBound(to: Socket.self), flags: event.events)
    }
}
