internal import Glibc

/// One connection of a worker: plain memory, no reference counts, as thousands of them are walked through for every event.
struct Link {
    enum Phase: UInt8 {
        case free, connecting, securing, upgrading, opening, open
        /// An HTTP connection that publishes.
        case http
    }

    var descriptor: Int32 = -1
    var phase = Phase.free
    /// More is waiting to be written than the kernel took.
    var wantsWriting = false
    /// What it receives goes into the tally; not so what a publisher listens to for its own sake.
    var isTallied = true
    /// Its watcher wants every message.
    var isListenedTo = false
    var isSecure = false
    /// Counts up with every use of the slot, so that what is left over of a former connection finds nobody.
    var generation: UInt32 = 0
    /// Of the plan's opening steps, the next.
    var step: Int32 = 0
    /// Of the scenario's channels.
    var channel: Int32 = 0
    /// The beginning of a frame or answer whose rest has not come.
    var carry = HeldBytes()
    /// When it was due to be opened.
    var due: UInt64 = 0
}

/// Some bytes that are kept between two reads. Whoever holds one frees it.
@safe struct HeldBytes {
    private var bytes: UnsafeMutableRawPointer?
    private(set) var count = 0

    /// Copies the bytes; those of before are gone.
    mutating func replace(with source: UnsafeRawBufferPointer) {
        if source.count > 0, let from = source.baseAddress {
            guard let moved = unsafe realloc(bytes, source.count) else { preconditionFailure("no memory for \(source.count) bytes") }
            unsafe bytes = moved
            unsafe memcpy(moved, from, source.count)
        }
        count = source.count
    }

    /// Writes them to the front of a buffer that is large enough.
    func copy(to buffer: UnsafeMutableRawBufferPointer) {
        if count > 0, let from = unsafe bytes, let to = buffer.baseAddress { unsafe memcpy(to, from, count) }
    }

    mutating func free() {
        unsafe Glibc.free(bytes)
        unsafe bytes = nil
        count = 0
    }
}

/// The connections of one worker by slot. Owned by the worker's thread; `free()` ends it.
@safe struct LinkTable {
    private var base: UnsafeMutablePointer<Link>
    private(set) var capacity: Int

    private static let initialCapacity = 256

    init() {
        capacity = Self.initialCapacity
        unsafe base = .allocate(capacity: Self.initialCapacity)
        unsafe base.initialize(repeating: Link(), count: Self.initialCapacity)
    }

    subscript(slot: Int) -> Link {
        @inline(__always) get {
            assert(slot < capacity)
            return unsafe base[slot]
        }
        @inline(__always) nonmutating _modify {
            assert(slot < capacity)
            yield unsafe &base[slot]
        }
    }

    mutating func grow() {
        let larger = UnsafeMutablePointer<Link>.allocate(capacity: capacity * 2)
        unsafe larger.moveInitialize(from: base, count: capacity)
        unsafe (larger + capacity).initialize(repeating: Link(), count: capacity)
        unsafe base.deallocate()
        unsafe base = larger
        capacity *= 2
    }

    func free() {
        unsafe base.deallocate()
    }
}
