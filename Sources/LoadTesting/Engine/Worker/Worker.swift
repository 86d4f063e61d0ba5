internal import CLoadSockets
internal import Glibc

/// One thread of the client: its connections on one epoll, a shared read buffer, and its tally.
///
/// All state belongs to that thread; other threads enter via `door`. A turn handles posted work, then readable connections, then due tasks.
@safe final class Worker {
    let door: WorkerDoor
    let targets: Targets
    /// The address that the next connection without one of its own goes to.
    private var turn: Int
    var counts: WorkerCounts
    var tally: Tally
    var links = LinkTable()
    var plans: [ConnectionPlan?]
    /// Output that the kernel did not take, by slot.
    var unwritten: [Int: [UInt8]] = [:]
    /// Fragments of incomplete messages, by slot.
    var pieces: [Int: [UInt8]] = [:]
    var secure: SecureLinks?
    var markHint = 0
    /// The dialect's `joinsEvents`: a message may hold several events.
    var joinsEvents = false
    let poll: Int32
    var publishers = PublisherShelf()
    /// The scenario's state on this thread.
    var scenario: AnyObject?

    private let timer: Int32
    private var freeSlots: [Int]
    private var paces: [Pace] = []
    private var armed: UInt64 = 0
    private var isStopping = false
    private(set) var buffer: UnsafeMutableRawBufferPointer
    private let ready: UnsafeMutablePointer<tandem_load_ready>

    private static let readyMax = 1024
    /// Enough for a socket's default buffer; grows for longer messages.
    private static let bufferBytes = 256 << 10
    private static let bellTag = UInt64.max
    private static let timerTag = UInt64.max - 1

    /// - Parameter turn: the address that the turns begin with.
    init(door: WorkerDoor, targets: Targets, kinds: [MeasuredKind], turn: Int = 0) throws(LoadError) {
        self.door = door
        self.targets = targets
        self.turn = turn
        counts = WorkerCounts(nodes: targets.count)
        poll = tandem_load_poll_create()
        timer = tandem_load_timer_create()
        guard poll >= 0, timer >= 0 else { throw LoadError("no descriptors are left: raise the limit (ulimit -n)") }
        unsafe buffer = .allocate(byteCount: Self.bufferBytes, alignment: 16)
        unsafe ready = .allocate(capacity: Self.readyMax)
        tally = Tally(kinds: kinds, slots: links.capacity, nodes: targets.count)
        plans = Array(repeating: nil, count: links.capacity)
        freeSlots = Array((0..<links.capacity).reversed())
        if targets.first.isSecure { secure = try SecureLinks() }
        _ = tandem_load_poll_add(poll, door.bell, Self.bellTag, 0)
        _ = tandem_load_poll_add(poll, timer, Self.timerTag, 0)
    }

    deinit {
        Glibc.close(poll)
        Glibc.close(timer)
        unsafe buffer.deallocate()
        unsafe ready.deallocate()
        links.free()
        tally.free()
    }

    /// Serves until told to stop, then closes all connections.
    func run() {
        // OpenSSL writes with write(2): SIGPIPE from a closed connection would end the program.
        var pipe = sigset_t()
        unsafe sigemptyset(&pipe)
        unsafe sigaddset(&pipe, SIGPIPE)
        unsafe pthread_sigmask(SIG_BLOCK, &pipe, nil)
        while !isStopping {
            let count = unsafe tandem_load_poll_wait(poll, ready, CInt(Self.readyMax), -1)
            precondition(count >= 0, "epoll_wait failed with \(-count)")
            for index in 0..<Int(count) {
                let event = unsafe ready[index]
                switch event.tag {
                case Self.bellTag: for work in door.take() { work(self) }
                case Self.timerTag: tandem_load_silence(timer)
                default: serve(event)
                }
            }
            runPaces()
        }
        for slot in 0..<links.capacity where links[slot].phase != .free { release(slot) }
        // Watchers may hold this worker: breaks the reference cycle.
        scenario = nil
        publishers.clear()
        paces.removeAll()
    }

    func stop() { isStopping = true }

    /// The counts, with the thread's current CPU time.
    func snapshot() -> WorkerCounts {
        counts.cpu = tandem_load_thread_cpu()
        return counts
    }

    private func serve(_ event: tandem_load_ready) {
        let slot = Int(event.tag & 0xFFFF_FFFF)
        guard links[slot].phase != .free, links[slot].generation == UInt32(event.tag >> 32) else { return }
        switch links[slot].phase {
        case .connecting: finishConnecting(slot)
        case .securing: goOnSecuring(slot)
        default:
            let generation = links[slot].generation
            if event.is_writable != 0, links[slot].wantsWriting { writeRest(slot) }
            if event.is_readable != 0, links[slot].generation == generation { receive(slot) }
        }
    }

    // MARK: Times

    func add(_ pace: Pace) { paces.append(pace) }

    private func runPaces() {
        guard !paces.isEmpty else { return }
        let now = tandem_load_now()
        var ended = false
        // Tasks added meanwhile run at the next look.
        for index in paces.indices where paces[index].due <= now {
            if !paces[index].run(now: now) {
                paces[index] = Pace(due: .max) { _ in nil }
                ended = true
            }
        }
        if ended { paces.removeAll { $0.due == .max } }
        // A due time in the past fires the timer at once.
        let next = paces.map(\.due).min() ?? 0
        if next != armed || next <= now {
            armed = next
            tandem_load_timer_set(timer, next)
        }
    }

    // MARK: Slots

    /// The index of a new connection's address.
    func node(for plan: ConnectionPlan) -> Int {
        if let node = plan.node { return node % targets.count }
        defer { turn += 1 }
        return turn % targets.count
    }

    func takeSlot() -> Int {
        if let slot = freeSlots.popLast() { return slot }
        let former = links.capacity
        links.grow()
        tally.grow(slots: links.capacity)
        plans.append(contentsOf: repeatElement(nil, count: former))
        freeSlots.append(contentsOf: (former..<links.capacity).reversed())
        return freeSlots.removeLast()
    }

    /// Closes the descriptor and frees the slot.
    func release(_ slot: Int) {
        secure?.free(slot)
        if links[slot].descriptor >= 0 { Glibc.close(links[slot].descriptor) }
        links[slot].carry.free()
        let generation = links[slot].generation
        links[slot] = Link()
        links[slot].generation = generation &+ 1
        plans[slot] = nil
        unwritten[slot] = nil
        pieces[slot] = nil
        freeSlots.append(slot)
    }

    /// Grows the buffer for a long message. False at the maximum of one message.
    func growBuffer() -> Bool {
        guard unsafe buffer.count < WebSocketFrame.payloadBytesMax * 2 else { return false }
        let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: unsafe buffer.count * 2, alignment: 16)
        unsafe larger.copyMemory(from: UnsafeRawBufferPointer(buffer))
        unsafe buffer.deallocate()
        unsafe buffer = larger
        return true
    }
}
