internal import CLibWebSockets
internal import Glibc

/// The deadlines of an ending connection, in ticks of the loop's clock.
struct Ending {
    var deadline: UInt32
    let latest: UInt32
}

/// Ending connections: all is sent, and incoming bytes are discarded until the peer ends the connection. Closing a
/// socket with unread bytes resets the connection, and the peer may lose the last bytes sent (RFC 9112, 9.6; RFC 6455,
/// 7.1.1).
extension Loop {
    /// Ends sending once the bytes written before are sent. The connection ends when the peer ends it, or at the deadline.
    func beginEnding(_ socket: SocketPointer) {
        assert(
            unsafe !socket.pointee.isEnding && socket.pointee.slotPlusOne == 0 && socket.pointee.doorPlusOne == 0,
            "a connection ends that still has a slot, or ends already")
        unsafe socket.pointee.isEnding = true
        unsafe endings[socket] = Ending(deadline: tick &+ LoopOptions.lingerTicks, latest: bodyDeadline)
        unsafe finishSending(socket)
    }

    func finishSending(_ socket: SocketPointer) {
        if unsafe hasUnsent(socket) { return unsafe awaitWritable(socket) }
        if let tls = unsafe socket.pointee.tls { unsafe tandem_lws_finish_sending(tls) }
        unsafe shutdown(socket.pointee.descriptor, Int32(SHUT_WR))
    }

    /// Extends the deadline of a peer that is still sending, at most to the time limit of a request.
    func goesOnSending(_ socket: SocketPointer) {
        assert(unsafe endings[socket] != nil, "an ending connection has no deadline")
        unsafe endings[socket]?.deadline = tick &+ LoopOptions.lingerTicks
    }

    /// Cuts off connections past their deadline. Once per tick.
    func endLingerers() {
        for unsafe (socket, ending) in unsafe endings where isPast(ending.deadline) || isPast(ending.latest) { unsafe end(socket) }
    }
}
