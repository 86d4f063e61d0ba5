internal import CLibWebSockets
internal import Glibc
internal import HubCore

/// Sockets with and without TLS: what they read, take, want and how they end. A plain socket is the kernel's alone; one with TLS is
/// read and written by libwebsockets.
extension Loop {
    // MARK: Reading

    /// Handles an event of a plain socket.
    func ready(_ socket: SocketPointer, _ event: Poller.Event) {
        // An earlier event of this turn may have ended it.
        if unsafe socket.pointee.isGone || socket.pointee.isCutOff { return }
        if unsafe event.mayWrite && socket.pointee.wantsWritable {
            unsafe socket.pointee.wantsWritable = false
            guard unsafe sendUnsent(socket), unsafe socket.pointee.hasUnsent || writable(socket) else { return unsafe gone(socket) }
        }
        if unsafe socket.pointee.isGone { return }
        if unsafe event.mayRead && socket.pointee.isReading {
            guard unsafe read(socket) else { return unsafe gone(socket) }
        } else if event.isOver {
            return unsafe gone(socket)
        }
        unsafe watch(socket)
    }

    /// Takes what has arrived, one buffer of it. False: the peer has ended the connection, or it fails.
    func read(_ socket: SocketPointer) -> Bool {
        let count = unsafe tandem_receive(socket.pointee.descriptor, inbox.baseAddress, inbox.count)
        if count > 0 { return unsafe received(socket, UnsafeMutableRawBufferPointer(rebasing: inbox[..<count])) }
        return count < 0 && Self.isFull(count)
    }

    /// Takes bytes that have arrived. False: the connection ends at once.
    func received(_ socket: SocketPointer, _ bytes: UnsafeMutableRawBufferPointer) -> Bool {
        if unsafe socket.pointee.isEnding {
            unsafe goesOnSending(socket)
            return true
        }
        if let slot = unsafe slot(of: socket) { return unsafe receivedFrames(slot, bytes) }
        return unsafe receivedRequests(socket, UnsafeRawBufferPointer(bytes))
    }

    /// Resumes reading, or leaves incoming bytes in the kernel.
    func setReading(_ socket: SocketPointer, _ isReading: Bool) {
        guard unsafe socket.pointee.isReading != isReading else { return }
        unsafe socket.pointee.isReading = isReading
        if let tls = unsafe socket.pointee.tls { return unsafe tandem_lws_read_on(tls, isReading) }
        unsafe watch(socket)
    }

    // MARK: Writing

    /// Takes bytes for the peer, and keeps those that the kernel does not take yet. False: the socket is dead.
    func write(_ bytes: UnsafeRawBufferPointer, to socket: SocketPointer) -> Bool {
        assert(unsafe !socket.pointee.isGone, "bytes are written to a socket that is gone")
        if let tls = unsafe socket.pointee.tls { return unsafe Int(tandem_lws_write(tls, bytes.baseAddress, bytes.count)) >= bytes.count }
        let sent = unsafe socket.pointee.hasUnsent ? 0 : tandem_send(socket.pointee.descriptor, bytes.baseAddress, bytes.count)
        if sent == bytes.count { return true }
        guard sent >= 0 || Self.isFull(sent) else { return false }
        unsafe socket.pointee.hasUnsent = true
        unsafe unsent[socket, default: []] += bytes[max(0, sent)...]
        unsafe awaitWritable(socket)
        return true
    }

    /// Whether bytes given to `write` are not sent yet.
    func hasUnsent(_ socket: SocketPointer) -> Bool {
        if let tls = unsafe socket.pointee.tls { return unsafe lws_partial_buffered(tls) != 0 }
        return unsafe socket.pointee.hasUnsent
    }

    /// Has `writable` called once, when the socket may take more.
    func awaitWritable(_ socket: SocketPointer) {
        if let tls = unsafe socket.pointee.tls {
            unsafe lws_callback_on_writable(tls)
            return
        }
        if unsafe socket.pointee.wantsWritable { return }
        unsafe socket.pointee.wantsWritable = true
        unsafe watch(socket)
    }

    /// The socket may take more. libwebsockets also calls without need. False: the connection ends at once.
    func writable(_ socket: SocketPointer) -> Bool {
        if unsafe socket.pointee.isEnding {
            unsafe finishSending(socket)
            return true
        }
        if let slot = unsafe slot(of: socket) { return unsafe writable(slot, socket) }
        return unsafe answerWritable(socket)
    }

    /// Sends what is left of cut writes. False: the socket is dead.
    private func sendUnsent(_ socket: SocketPointer) -> Bool {
        guard unsafe socket.pointee.hasUnsent, let rest = unsafe unsent[socket] else { return true }
        assert(!rest.isEmpty, "a socket has a rest of no bytes")
        let sent = unsafe rest.withUnsafeBytes { unsafe tandem_send(socket.pointee.descriptor, $0.baseAddress, $0.count) }
        if sent == rest.count {
            unsafe unsent[socket] = nil
            unsafe socket.pointee.hasUnsent = false
            return true
        }
        guard sent >= 0 || Self.isFull(sent) else { return false }
        unsafe unsent[socket] = Array(rest[max(0, sent)...])
        unsafe socket.pointee.wantsWritable = true
        return true
    }

    /// The kernel has no room for more bytes, or none have arrived.
    static func isFull(_ code: Int) -> Bool { [EAGAIN, EWOULDBLOCK, EINTR].contains(Int32(-code)) }

    // MARK: Watching

    /// Tells the kernel what a plain socket wants, if that is news. A socket that is being adopted is watched at the end.
    func watch(_ socket: SocketPointer) {
        let wanted = unsafe Poller.events(of: socket.pointee)
        guard unsafe !socket.pointee.isGone, unsafe socket.pointee.watched != wanted, unsafe socket.pointee.watched != Poller.unwatched
        else { return }
        if unsafe !poller.watch(socket) { unsafe end(socket) }
    }

    // MARK: Ending

    /// Cuts a connection off in a moment: callers up the stack may still use it.
    func end(_ socket: SocketPointer) {
        if let tls = unsafe socket.pointee.tls {
            unsafe tandem_lws_kill(tls)
            hasNewTimeouts = true
            return
        }
        assert(unsafe !socket.pointee.isGone, "a socket is cut off that is gone")
        if unsafe socket.pointee.isCutOff { return }
        unsafe socket.pointee.isCutOff = true
        unsafe cutOff.append(socket)
    }

    /// Ends the plain connections that are to be cut off.
    func endCutOff() {
        while let socket = unsafe cutOff.popLast() {
            if unsafe !socket.pointee.isGone { unsafe gone(socket) }
        }
    }

    /// Reports the end of a plain connection, and closes its socket.
    func gone(_ socket: SocketPointer) {
        assert(unsafe library == nil && socket.pointee.tls == nil, "a connection with TLS ends past the library")
        unsafe closed(socket)
        unsafe poller.forget(socket)
        Descriptor.close(unsafe socket.pointee.descriptor)
        unsafe descriptorEnded(socket)
    }

    /// Ends the use of a connection. The socket may not be used from here on.
    func closed(_ socket: SocketPointer) {
        assert(unsafe !socket.pointee.isGone, "a socket is gone twice")
        let ending = unsafe endings.removeValue(forKey: socket)
        assert(unsafe socket.pointee.isEnding == (ending != nil), "a connection ends with and without a deadline")
        unsafe leave(socket)
        unsafe endWebSocket(socket)
        if unsafe socket.pointee.hasUnsent { unsafe unsent[socket] = nil }
        unsafe socket.pointee.isGone = true
    }

    /// Gives back what the loop has of a socket whose descriptor is closed. The memory of a plain one is freed at the end of the turn:
    /// further events of this turn name it. With TLS it would lie between the blocks that a crowd leaves, and make their return slow.
    func descriptorEnded(_ socket: SocketPointer) {
        let isRequest = unsafe socket.pointee.isRequest
        handle.released(isRequest: isRequest)
        if unsafe !peers.isEmpty { unsafe peers[socket] = nil }
        unsafe uncountConnection(socket)
        if !isRequest { delegate?.socketClosed() }
        if library == nil { unsafe ended.append(socket) } else { unsafe Self.free(socket) }
        leaveWhenEmpty()
    }

    /// Frees the memory of sockets that are gone.
    func freeEnded() {
        while let socket = unsafe ended.popLast() { unsafe Self.free(socket) }
    }

    private static func free(_ socket: SocketPointer) {
        unsafe socket.deinitialize(count: 1)
        unsafe socket.deallocate()
    }

    func slot(of socket: SocketPointer) -> UInt32? {
        let slotPlusOne = unsafe socket.pointee.slotPlusOne
        assert(Int(slotPlusOne) <= table.capacity, "a socket has slot \(slotPlusOne) of \(table.capacity), plus one")
        return slotPlusOne == 0 ? nil : slotPlusOne - 1
    }
}
