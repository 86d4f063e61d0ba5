/// One socket of a loop, and the use that is made of it. Trivial, in memory of its own until the end of the turn in which
/// it is gone. Confined to the loop's thread.
@safe struct Socket {
    /// Owned by the loop, and by libwebsockets with TLS.
    let descriptor: Int32
    /// libwebsockets' connection with TLS; nil without.
    var tls: OpaquePointer?
    /// Slot in the connection table, plus one; 0 before the upgrade is complete.
    var slotPlusOne: UInt32 = 0
    /// Index of the HTTP connection, plus one; 0 before its first byte, and once it is upgraded.
    var doorPlusOne: UInt32 = 0
    /// The kernel's events for a plain socket, as in `epoll_event`; `Poller.unwatched` before the first call.
    var watched = Poller.unwatched
    /// The acceptor saw a plain HTTP request.
    let isRequest: Bool
    /// False while incoming bytes are left in the kernel.
    var isReading = true
    /// `LoopSockets.writable` is called when the socket may take more.
    var wantsWritable = false
    /// Plain: bytes of a cut write wait in `Loop.unsent`.
    var hasUnsent = false
    /// The connection is ending, and incoming bytes are discarded.
    var isEnding = false
    /// The loop cuts the connection off in this turn or the next one.
    var isCutOff = false
    /// The connection's end was reported. Nothing may use the socket any more.
    var isGone = false

    init(descriptor: Int32, isRequest: Bool) {
        self.descriptor = descriptor
        self.isRequest = isRequest
    }
}

/// Where a loop keeps a socket: its name in all other tables.
typealias SocketPointer = UnsafeMutablePointer<Socket>
