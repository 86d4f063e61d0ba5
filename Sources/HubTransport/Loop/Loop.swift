internal import CLibWebSockets
internal import Glibc
package import HubCore
internal import HubWire

/// One service thread: an event queue of the kernel, the connections on it, and the writes to them.
///
/// One thread makes, uses and ends a loop, without locks, and every entry checks the thread. Other threads reach a loop via
/// `LoopHandle` and a `Mailbox`. A loop has no listening socket: the acceptor hands over descriptors.
@safe package final class Loop {
    package let index: Int
    /// The limits given at the start.
    package let options: LoopOptions
    /// The way in for other threads.
    package let handle: LoopHandle
    /// Set right after the loop is made, before anything can call it.
    var delegate: (any LoopDelegate)?

    let thread = pthread_self()
    let poller: Poller
    /// Serves TLS; nil without. Set before the loop runs.
    private(set) var library: LibWebSockets?
    /// The bytes read last; overwritten by the next read.
    let inbox: UnsafeMutableRawBufferPointer
    var table: ConnectionTable
    /// The table's slots, at a fixed address.
    let connections: UnsafeMutablePointer<ConnectionState>
    var wheel = IdleWheel()
    /// Send queues of the slow connections, by slot.
    var queues: [UInt32: SendQueue] = [:]
    var laggards = Laggards()
    let queuedMemory = QueuedMemory()
    var assemblies = Assemblies()
    let http = HTTPConnections()
    // Guard: the loop's thread. Unchecked: neither reading a head nor its memory calls anybody back.
    /// Header fields that came lately on any connection, and memory of requests that are answered.
    @exclusivity(unchecked) var heads = HeadMemory()
    /// Indices of HTTP connections whose next request has arrived already.
    var resuming: [Int] = []
    /// Ending connections and their deadlines.
    var endings: [SocketPointer: Ending] = unsafe [:]
    /// Rests of cut writes to plain sockets that have no `SendQueue`.
    var unsent: [SocketPointer: [UInt8]] = unsafe [:]
    /// Plain sockets to be closed in a moment.
    var cutOff: [SocketPointer] = unsafe []
    /// Sockets that are gone, and whose memory is freed at the end of the turn.
    var ended: [SocketPointer] = unsafe []
    /// Shared by all loops.
    let bodies: BodyBudget
    /// Peers named by proxies.
    var peers: [SocketPointer: String] = unsafe [:]
    /// The addresses that HTTP connections count for.
    var counted: [SocketPointer: String] = unsafe [:]
    /// Quarter seconds since the loop began (`LoopOptions.tickMilliseconds`).
    private(set) var tick: UInt32 = 0
    /// A copy of the counters. On the loop's thread.
    package var counters: Counters {
        assertOnThread()
        return unsafe tally
    }
    // Guard: the loop's thread. Unchecked: a dynamic exclusivity check would cost as much as delivering a small frame.
    @exclusivity(unchecked) var tally = Counters()
    /// Durations of the turns; see `turnBegins`.
    var turns = Histogram()
    /// The start of the current turn, in nanoseconds of the monotonic clock; 0 between two turns.
    ///
    package var turnBeganAt: UInt64 { turnStart }
    // A property that other modules could read itself is checked for overlaps at run time, at each access.
    private var turnStart: UInt64 = 0
    private var due: [UInt32] = []
    var newcomers = Newcomers()
    private(set) var isStopping = false
    /// The loop ends after this turn.
    private var isOver = false
    /// The next turn begins without waiting.
    private var isHurried = false
    /// The time of the next tick, in nanoseconds of the monotonic clock.
    private var nextTickAt: UInt64 = 0
    /// The library has been given a time-out outside of its own callbacks; see `LibWebSockets.noticeTimeouts`.
    var hasNewTimeouts = false
    /// One plain socket is all that this turn has to serve, and nothing of an earlier turn waits. Never true with TLS: the library tells
    /// of one socket after the other.
    var isAlone = false
    /// Requests were answered in this turn, so `turnEnds` puts the fan-out off.
    var hasAnswersWaiting = false
    /// Turns for which the fan-out has been put off.
    private var turnsPutOff = 0
    /// Most turns for which the fan-out waits for further publishes.
    private static let turnsPutOffMax = 4
    /// Descriptors that the library took.
    var takenCount = 0
    private var stoppingTicks = 0

    /// An unmasked PING (RFC 6455, 5.5.2). A PONG has the payload of its PING.
    private static let ping: [UInt8] = [0x89, 0x01, silenceMark]
    /// The first byte of the silence watch's payload; other payloads are the delegate's.
    package static let silenceMark = UInt8(ascii: "t")

    /// Counters of a loop since its start. Plain numbers, read on the loop's thread.
    package struct Counters: Sendable {
        /// Frames or batches accepted for one connection, whether written at once or queued.
        package var deliveries: UInt64 = 0
        /// Writes begun at once, straight to the socket or by the library.
        package var writes: UInt64 = 0
        /// Direct writes that the kernel took only in part, or not at all.
        package var cutWrites: UInt64 = 0
        /// Bytes accepted for connections, without TLS overhead.
        package var bytes: UInt64 = 0
        /// Connections closed because they did not read fast enough.
        package var slowConsumers: UInt64 = 0
        /// PINGs of the silence watch.
        package var pings: UInt64 = 0
        /// Messages received, whole or in pieces.
        package var received: UInt64 = 0
        /// Bytes of these messages.
        package var receivedBytes: UInt64 = 0
        /// WebSocket connections opened.
        package var opened: UInt64 = 0
        /// WebSocket connections whose peers sent their close frame first.
        package var closedByPeer: UInt64 = 0
        /// WebSocket connections to which the server sent its close frame first.
        package var closedByServer: UInt64 = 0
        /// WebSocket connections that ended without a close frame.
        package var lost: UInt64 = 0
        /// Answers to HTTP requests, by the hundreds of their status.
        package var responses = [UInt64](repeating: 0, count: 6)

        /// Counts a batch accepted for `count` connections, in one access.
        mutating func delivered(_ count: Int, queued: Int, bytes size: Int) {
            assert(queued >= 0 && queued <= count && size >= 0, "\(queued) of \(count) deliveries of \(size) bytes wait")
            deliveries &+= UInt64(count)
            writes &+= UInt64(count - queued)
            bytes &+= UInt64(count) &* UInt64(size)
        }
    }

    init(index: Int, options: LoopOptions, handle: LoopHandle, poller: Poller, bodies: BodyBudget, capacity: Int) {
        precondition((0..<ConnectionID.loopsMax).contains(index), "loop \(index)")
        self.index = index
        self.options = options
        self.handle = handle
        self.poller = poller
        unsafe inbox = .allocate(byteCount: Int(LoopOptions.readBytesMax), alignment: 64)
        self.bodies = bodies
        table = ConnectionTable(capacity: capacity)
        unsafe connections = unsafe table.base
    }

    deinit {
        unsafe inbox.deallocate()
    }

    /// Starts TLS where the options have a certificate. Before `run`, on the loop's thread.
    func openTLS(capacity: Int) throws(TransportError) {
        guard let certificate = options.certificate else { return }
        let library = try LibWebSockets(certificate)
        self.library = library
        try library.open(for: self, capacity: capacity)
        try poller.watch(library.queue, once: false)
    }

    /// Stops the program when called from another thread: a race here would corrupt the library's state silently.
    func assertOnThread(_ caller: StaticString = #function) {
        precondition(isOnThread, "\(caller) called outside of loop \(index)'s thread")
    }

    /// Whether the caller is on the loop's thread, the only one that may touch the loop's state.
    var isOnThread: Bool { pthread_equal(thread, pthread_self()) != 0 }

    /// WebSocket connections open now.
    package var connectionCount: Int { table.count }

    func id(_ slot: UInt32) -> ConnectionID {
        unsafe ConnectionID(loop: index, slot: Int(slot), generation: table.base[Int(slot)].generation)
    }

    /// The connection's state; nil when it is gone. Stops the program for a connection of another loop: a connection of this one may have
    /// the same slot and generation.
    func state(_ connection: ConnectionID) -> UnsafeMutablePointer<ConnectionState>? {
        precondition(connection.loop == index, "loop \(index) was asked for connection \(connection)")
        return unsafe table.lookup(slot: connection.slot, generation: connection.generation)
    }

    /// Sends a PING after `pingAfter` of inbound silence, from now on. Reports the connection silent when nothing
    /// arrives for `pongWithin` more. Both are rounded up to ticks. Anything inbound proves life, PINGs and PONGs
    /// included.
    package func watchSilence(_ connection: ConnectionID, pingAfter: Duration, pongWithin: Duration) {
        assertOnThread()
        guard let state = unsafe state(connection) else { return }
        unsafe state.pointee.pingAfterTicks = ticks(pingAfter)
        unsafe state.pointee.pongWithinTicks = ticks(pongWithin)
        let after = unsafe UInt32(state.pointee.pingAfterTicks)
        unsafe wheel.arm(UInt32(connection.slot), in: after, now: tick, table: table.base)
    }

    private func ticks(_ duration: Duration) -> UInt16 {
        let unit = Int64(LoopOptions.tickMilliseconds)
        return UInt16(clamping: max(1, (duration.milliseconds + unit - 1) / unit))
    }

    // MARK: Turns

    /// Takes turns until the loop is stopped: writes the last turn's output, waits, and handles what has arrived.
    func run() {
        nextTickAt = uv_hrtime() + Self.tickNanoseconds
        while !isOver {
            turnEnds()
            freeEnded()
            let found = poller.wait(milliseconds: pause)
            let now = uv_hrtime()
            if found > 0 { turnBegins(at: now) }
            var isWoken = !newcomers.isEmpty
            isAlone = unsafe found == 1 && poller[0].socket != nil && turnsPutOff == 0 && !isWoken
            for index in 0..<found {
                let event = poller[index]
                if let socket = unsafe event.socket { unsafe ready(socket, event) } else { isWoken = true }
            }
            if isWoken {
                _ = handle.waker.takeWake()
                woken()
            }
            library?.serve()
            if now >= nextTickAt {
                nextTickAt = max(nextTickAt + Self.tickNanoseconds, now)
                ticked()
            }
            endCutOff()
        }
        turnEnds()
    }

    private static let tickNanoseconds = LoopOptions.tickMilliseconds * 1_000_000

    /// Milliseconds until the next turn must begin.
    private var pause: Int32 {
        let hasCutOff = unsafe !cutOff.isEmpty
        if isHurried || hasCutOff || !newcomers.isEmpty {
            isHurried = false
            return 0
        }
        let now = uv_hrtime()
        let untilTick = now < nextTickAt ? Int32(clamping: (nextTickAt - now + 999_999) / 1_000_000) : 0
        guard let library else { return untilTick }
        let untilService = library.pause
        return untilService < 0 ? untilTick : min(untilTick, untilService)
    }

    /// Starts the clock of a turn, the loop's work between two waits. The clock starts with the first event seen here,
    /// so it leaves out bytes that the library read and decrypted before.
    @inline(__always) func turnBegins() {
        if turnStart == 0 { turnBegins(at: uv_hrtime()) }
    }

    /// Keeps the start of a turn whose writes were put off.
    private func turnBegins(at now: UInt64) {
        assert(isOnThread, "a turn of loop \(index) begins on another thread")
        if turnStart == 0 { turnStart = now }
    }

    private func woken() {
        turnBegins()
        adoptNewcomers()
        delegate?.loopWoken()
        if handle.isStopRequested, !isStopping { beginStopping() }
    }

    private func beginStopping() {
        isStopping = true
        dismissNewcomers()
        for slot in table.usedSlots where unsafe table.base[Int(slot)].condition != .free {
            unsafe table.base[Int(slot)].condition = .closing
            if let socket = unsafe table.base[Int(slot)].socket { unsafe end(socket) }
        }
        for index in http.indices { if let connection = http[index] { unsafe end(connection.socket) } }
        for unsafe socket in unsafe endings.keys { unsafe end(socket) }
        leaveWhenEmpty()
    }

    /// Ends a stopping loop when its last connection has ended.
    func leaveWhenEmpty() {
        if isStopping, handle.load == 0 { isOver = true }
    }

    func turnEnds() {
        assert(isOnThread, "a turn of loop \(index) ends on another thread")
        resumeRequests()
        // Answers come before the fan-out, except a lone request's. If they were written after it, busy publishers would split into two
        // alternating halves, and only half of the frames could share a write. They come before more newcomers, too.
        if hasAnswersWaiting, turnsPutOff < Self.turnsPutOffMax, !newcomers.isEmpty || delegate?.hasFewWrites != true {
            hasAnswersWaiting = false
            turnsPutOff += 1
            isHurried = true
            return
        }
        hasAnswersWaiting = false
        turnsPutOff = 0
        delegate?.loopTurnEnds()
        if hasNewTimeouts {
            hasNewTimeouts = false
            library?.noticeTimeouts()
        }
        guard turnStart != 0 else { return }
        let now = uv_hrtime()
        assert(now >= turnStart, "the clock went back to \(now) ns")
        turns.note(nanoseconds: now - turnStart)
        turnStart = 0
        delegate?.loopTurnWritten(at: now)
    }

    /// Begins the next turn without waiting. Called from `LoopDelegate.loopTurnEnds` when more is to be written than a
    /// turn should take.
    package func comeBackAtOnce() {
        assertOnThread()
        isHurried = true
    }

    private func ticked() {
        turnBegins()
        tick &+= 1
        assert(isConsistent, "loop \(index) has \(table.count) connections, \(queues.count) queues and \(queuedMemory.bytes) bytes")
        unsafe wheel.takeDue(at: tick, into: &due, table: table.base)
        for slot in due { unsafe silenceDue(slot, table.base + Int(slot)) }
        enforceDeadlines()
        if isStopping {
            stoppingTicks += 1
            if stoppingTicks > LoopOptions.stoppingTicksMax { isOver = true }
        }
    }

    /// Whole ticks since the last received bytes; nil when unknown. One system call.
    private func quietTicks(_ state: UnsafeMutablePointer<ConnectionState>) -> UInt32? {
        guard let socket = unsafe state.pointee.socket else { return nil }
        let milliseconds = unsafe tandem_quiet_milliseconds(socket.pointee.descriptor)
        return milliseconds < 0 ? nil : UInt32(clamping: milliseconds / Int(LoopOptions.tickMilliseconds))
    }

    private func silenceDue(_ slot: UInt32, _ state: UnsafeMutablePointer<ConnectionState>) {
        if unsafe state.pointee.condition == .closing { return unsafe closingDue(slot, state) }
        guard unsafe state.pointee.condition == .open || state.pointee.condition == .behind else { return }
        let silence = unsafe tick &- state.pointee.lastInboundTick
        let after = unsafe UInt32(state.pointee.pingAfterTicks)
        let awaitsPong =
            unsafe state.pointee.pingTick != 0 && Int32(bitPattern: state.pointee.pingTick &- state.pointee.lastInboundTick) > 0
        if awaitsPong {
            let waited = unsafe tick &- state.pointee.pingTick
            let within = unsafe UInt32(state.pointee.pongWithinTicks)
            if waited >= within {
                // With TLS the library reads nothing while it holds unsent bytes; only the kernel knows of incoming
                // ones. A dead peer has been quiet for both waits, less a fraction of a tick.
                let quiet = unsafe quietTicks(state)
                if let quiet, quiet + 1 < waited + after {
                    unsafe state.pointee.lastInboundTick = tick &- quiet
                    unsafe wheel.arm(slot, in: after > quiet ? after - quiet : 1, now: tick, table: table.base)
                } else {
                    delegate?.connectionIsSilent(id(slot))
                }
            } else {
                unsafe wheel.arm(slot, in: within - waited, now: tick, table: table.base)
            }
        } else if silence >= after {
            unsafe state.pointee.pingTick = tick
            unsafe tally.pings += 1
            send(Self.ping, to: id(slot))
            unsafe wheel.arm(slot, in: UInt32(state.pointee.pongWithinTicks), now: tick, table: table.base)
        } else {
            unsafe wheel.arm(slot, in: after - silence, now: tick, table: table.base)
        }
    }
}

@available(*, unavailable)
extension Loop: Sendable {}
