internal import CLibWebSockets

/// When a connection that is ending is cut off, as ticks of the loop's clock.
struct Ending {
    var deadline: UInt32
    let latest: UInt32
}

/// Connections that have said their last word and wait for the peer to go: what they still send is thrown away. A socket that is closed
/// with unread bytes in it resets its connection, and the peer may never read the last word (RFC 9112, 9.6; RFC 6455, 7.1.1).
extension Loop {
    /// Nothing more is sent once the library has sent what it holds; the connection ends when the peer ends it, or after a moment.
    func beginEnding(_ wsi: OpaquePointer, _ session: UnsafeMutablePointer<LoopSession>) {
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

    /// The peer is still sending: it has a moment more for it, but no longer than a request may take.
    func goesOnSending(_ wsi: OpaquePointer) {
        endings[UInt(bitPattern: wsi)]?.deadline = tick &+ LoopOptions.lingerTicks
    }

    /// Cuts off who has had time enough. Once a tick.
    func endLingerers() {
        for (key, ending) in endings where isPast(ending.deadline) || isPast(ending.latest) {
            if let wsi = unsafe OpaquePointer(bitPattern: key) { unsafe end(wsi) }
        }
    }

    /// Ends a connection without another word.
    func end(_ wsi: OpaquePointer) {
        unsafe tandem_lws_kill(wsi)
        hasNewTimeouts = true
    }
}
