internal import CLibWebSockets

/// The deadlines of an ending connection, in ticks of the loop's clock.
struct Ending {
    var deadline: UInt32
    let latest: UInt32
}

/// Ending connections: all is sent, and incoming bytes are discarded until the peer ends the connection. Closing a
/// socket with unread bytes resets the connection, and the peer may lose the last bytes sent (RFC 9112, 9.6; RFC 6455,
/// 7.1.1).
extension Loop {
    /// Ends sending once the library has sent its bytes. The connection ends when the peer ends it, or at the deadline.
    func beginEnding(_ wsi: OpaquePointer, _ session: UnsafeMutablePointer<LoopSession>) {
        assert(
            unsafe !session.pointee.isEnding && session.pointee.slotPlusOne == 0 && session.pointee.doorPlusOne == 0,
            "a connection ends that still has a slot, or ends already")
        unsafe session.pointee.isEnding = true
        endings[UInt(bitPattern: wsi)] = Ending(deadline: tick &+ LoopOptions.lingerTicks, latest: bodyDeadline)
        unsafe finishSending(wsi)
    }

    func finishSending(_ wsi: OpaquePointer) {
        if unsafe lws_partial_buffered(wsi) != 0 {
            unsafe lws_callback_on_writable(wsi)
        } else {
            unsafe tandem_lws_finish_sending(wsi)
        }
    }

    /// Extends the deadline of a peer that is still sending, at most to the time limit of a request.
    func goesOnSending(_ wsi: OpaquePointer) {
        assert(endings[UInt(bitPattern: wsi)] != nil, "an ending connection has no deadline")
        endings[UInt(bitPattern: wsi)]?.deadline = tick &+ LoopOptions.lingerTicks
    }

    /// Cuts off connections past their deadline. Once per tick.
    func endLingerers() {
        for (key, ending) in endings where isPast(ending.deadline) || isPast(ending.latest) {
            if let wsi = unsafe OpaquePointer(bitPattern: key) { unsafe end(wsi) }
        }
    }

    /// Closes the descriptors of plain connections that the library has taken off its tables in this turn, and frees after it.
    ///
    /// Otherwise the library would close each, and assert that no trace of it is left. It would look at every descriptor that the
    /// process may have: 0.4 ms for half a million.
    func closeDescriptors() {
        while let wsi = unsafe closing.popLast() {
            let descriptor = unsafe tandem_lws_plain_descriptor(wsi)
            assert(descriptor >= 0, "a connection that ends has no descriptor")
            let isForgotten = unsafe tandem_lws_forget_descriptor(wsi)
            assert(isForgotten, "the library keeps descriptor \(descriptor), and would close it")
            if isForgotten { Descriptor.close(descriptor) }
        }
    }

    /// Ends a connection without sending anything more.
    func end(_ wsi: OpaquePointer) {
        unsafe tandem_lws_kill(wsi)
        hasNewTimeouts = true
    }
}
