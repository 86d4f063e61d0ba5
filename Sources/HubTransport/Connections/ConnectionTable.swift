internal import HubCore

/// The loop's state of one WebSocket connection: trivial, in raw memory, found by slot.
///
/// The fan-out loop reads `descriptor` and `condition` and nothing else, so they stand in the first sixteen bytes.
@safe struct ConnectionState {
    /// Set while the connection is established.
    var socket: SocketPointer?
    /// The socket's descriptor without TLS; -1 with TLS.
    var descriptor: Int32
    var condition: Condition
    /// Incoming bytes are ignored.
    var isDeaf: Bool
    var generation: UInt32
    /// Tick of the loop's clock of the last received bytes.
    var lastInboundTick: UInt32
    /// Tick at which the PING that awaits its PONG was sent, or closing began.
    var pingTick: UInt32
    /// Ticks of silence before a PING, and how many its PONG may take. 0: no probing.
    var pingAfterTicks: UInt16
    var pongWithinTicks: UInt16
    /// Neighbours in the idle wheel's bucket, as slots; `ConnectionTable.none` ends the list.
    var wheelNext: UInt32
    var wheelPrevious: UInt32
    var wheelBucket: UInt16
    /// The code of the peer's close frame; 0 before one.
    var peerCloseCode: UInt16

    enum Condition: UInt8 {
        /// In the free list; `wheelNext` is the next free slot.
        case free
        /// Takes writes at once.
        case open
        /// Has a `SendQueue`: the kernel took an earlier write only in part, and new frames are queued.
        case behind
        /// A close frame was requested, or the connection failed: nothing more is written.
        case closing
    }
}

/// The connections of one loop: slots in one block of memory, reused via a free list, distinguished by generation.
///
/// The block is sized for the descriptor limit; untouched pages of it cost nothing.
@safe struct ConnectionTable: ~Copyable {
    static let none = UInt32.max

    let base: UnsafeMutablePointer<ConnectionState>
    let capacity: Int
    private(set) var count = 0
    private var firstFree = ConnectionTable.none
    private var used = 0

    /// - Parameter capacity: the most connections; 1 to `ConnectionID.slotsMax`.
    init(capacity: Int) {
        precondition((1...ConnectionID.slotsMax).contains(capacity), "a table for \(capacity) connections")
        self.capacity = capacity
        unsafe base = .allocate(capacity: capacity)
    }

    deinit {
        unsafe base.deallocate()
    }

    /// A slot for a new connection, or nil when the table is full.
    /// - Parameter descriptor: the socket when the connection is plain, -1 otherwise.
    mutating func insert(_ socket: SocketPointer, descriptor: Int32, tick: UInt32) -> UInt32? {
        let slot: UInt32
        var generation: UInt32 = 1
        if firstFree != Self.none {
            slot = firstFree
            assert(unsafe Int(slot) < used && base[Int(slot)].condition == .free, "slot \(slot) is in the free list and in use")
            unsafe firstFree = base[Int(slot)].wheelNext
            unsafe generation = base[Int(slot)].generation &+ 1
        } else if used < capacity {
            slot = UInt32(used)
            used += 1
        } else {
            return nil
        }
        unsafe (base + Int(slot)).initialize(
            to: ConnectionState(
                socket: socket, descriptor: descriptor, condition: .open, isDeaf: false, generation: generation, lastInboundTick: tick,
                pingTick: 0,
                pingAfterTicks: 0, pongWithinTicks: 0, wheelNext: Self.none, wheelPrevious: Self.none, wheelBucket: UInt16.max,
                peerCloseCode: 0))
        count += 1
        assert(count <= used && used <= capacity, "\(count) connections in \(used) slots of \(capacity)")
        assert(descriptor < 0 || isOwnedOnce(descriptor), "descriptor \(descriptor) belongs to two connections")
        return slot
    }

    /// Puts the slot into the free list. Stops the program when it is there already: two connections would share it from then on, and
    /// each would get the other's events.
    mutating func remove(_ slot: UInt32) {
        precondition(unsafe Int(slot) < used && base[Int(slot)].condition != .free, "slot \(slot) was removed already")
        precondition(unsafe base[Int(slot)].wheelBucket == UInt16.max, "slot \(slot) is removed and waits in the idle wheel")
        unsafe base[Int(slot)].socket = nil
        unsafe base[Int(slot)].descriptor = -1
        unsafe base[Int(slot)].condition = .free
        unsafe base[Int(slot)].wheelNext = firstFree
        firstFree = slot
        count -= 1
        assert(count >= 0, "\(count) connections")
    }

    /// Whether no two connections have the descriptor. Looks at small tables only, so that tests of large ones stay quick.
    private func isOwnedOnce(_ descriptor: Int32) -> Bool {
        used > 64 || (0..<used).count { unsafe base[$0].condition != .free && base[$0].descriptor == descriptor } == 1
    }

    /// Whether as many slots are in use as were counted. Walks the table.
    var isConsistent: Bool { (0..<used).count { unsafe base[$0].condition != .free } == count }

    /// The slot's state, if that generation uses the slot.
    func lookup(slot: Int, generation: UInt32) -> UnsafeMutablePointer<ConnectionState>? {
        guard slot < used, unsafe base[slot].condition != .free, unsafe base[slot].generation == generation else { return nil }
        return unsafe base + slot
    }

    /// Slots used so far: the range for walks over all connections.
    var usedSlots: Range<UInt32> { 0..<UInt32(used) }
}
