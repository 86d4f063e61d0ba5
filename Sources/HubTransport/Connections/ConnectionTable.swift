internal import CLibWebSockets

/// What the loop keeps of one WebSocket connection: trivial, in raw memory, found by its slot.
///
/// The fan-out loop reads `descriptor` and `condition` and nothing else, so they stand in the first sixteen bytes.
@safe struct ConnectionState {
    /// Set from established to closed. Only this table keeps it.
    var wsi: OpaquePointer?
    /// The socket of a plain connection, the library's from established to closed; -1 with TLS.
    var descriptor: Int32
    var condition: Condition
    /// Nothing that comes in is read any more.
    var isDeaf: Bool
    var generation: UInt32
    /// Tick of the loop's clock at which bytes last came in.
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
    /// Of the close frame that the peer sent; 0: none yet.
    var peerCloseCode: UInt16

    enum Condition: UInt8 {
        /// In the free list; `wheelNext` is the next free slot.
        case free
        /// Takes writes at once.
        case open
        /// Has a `SendQueue`: an earlier write was taken in part only, and everything new goes behind it.
        case behind
        /// A close frame was asked for, or the connection failed: nothing more is written.
        case closing
    }
}

/// The connections of one loop: slots in one block of memory, reused through a free list, told apart by generation.
///
/// The block is sized for the descriptor limit; untouched pages of it cost nothing.
@safe struct ConnectionTable: ~Copyable {
    static let none = UInt32.max

    let base: UnsafeMutablePointer<ConnectionState>
    let capacity: Int
    private(set) var count = 0
    private var firstFree = ConnectionTable.none
    private var used = 0

    init(capacity: Int) {
        self.capacity = capacity
        unsafe base = .allocate(capacity: capacity)
    }

    deinit {
        unsafe base.deallocate()
    }

    /// A slot for a new connection, or nil when every one is taken.
    /// - Parameter descriptor: the socket when the connection is plain, -1 otherwise.
    mutating func insert(_ wsi: OpaquePointer, descriptor: Int32, tick: UInt32) -> UInt32? {
        let slot: UInt32
        var generation: UInt32 = 1
        if firstFree != Self.none {
            slot = firstFree
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
                wsi: wsi, descriptor: descriptor, condition: .open, isDeaf: false, generation: generation, lastInboundTick: tick, pingTick: 0,
                pingAfterTicks: 0, pongWithinTicks: 0, wheelNext: Self.none, wheelPrevious: Self.none, wheelBucket: UInt16.max,
                peerCloseCode: 0))
        count += 1
        return slot
    }

    mutating func remove(_ slot: UInt32) {
        unsafe base[Int(slot)].wsi = nil
        unsafe base[Int(slot)].descriptor = -1
        unsafe base[Int(slot)].condition = .free
        unsafe base[Int(slot)].wheelNext = firstFree
        firstFree = slot
        count -= 1
    }

    /// The slot's state when it is in use by that generation.
    func lookup(slot: Int, generation: UInt32) -> UnsafeMutablePointer<ConnectionState>? {
        guard slot < used, unsafe base[slot].condition != .free, unsafe base[slot].generation == generation else { return nil }
        return unsafe base + slot
    }

    /// Slots that were ever used: the range to walk when every connection is meant.
    var usedSlots: Range<UInt32> { 0..<UInt32(used) }
}
