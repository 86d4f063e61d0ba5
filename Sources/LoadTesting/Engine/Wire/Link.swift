internal import Glibc

/// One connection of a worker: plain memory without reference counts, because every event walks through thousands of them.
struct Link {
    enum Phase: UInt8 {
        case free, connecting, securing, upgrading, opening, open
        /// An HTTP connection that publishes.
        case http
    }

    var descriptor: Int32 = -1
    var phase = Phase.free
    /// Whether output waits for the kernel to take it.
    var wantsWriting = false
    /// Whether received events go into the tally; false for a publisher's own witness.
    var isTallied = true
    /// Whether the watcher gets every message.
    var isListenedTo = false
    var isSecure = false
    /// Incremented with every use of the slot, so that leftovers of an earlier connection match nothing.
    var generation: UInt32 = 0
    /// Index of the next step of the plan's opening.
    var step: Int32 = 0
    /// Index in the scenario's channels.
    var channel: Int32 = 0
    /// Index of its address.
    var node: Int32 = 0
    /// The beginning of an incomplete frame or answer.
    var carry = HeldBytes()
    /// Time at which it was due to be opened.
    var due: UInt64 = 0
}

/// Bytes kept between two reads. Their holder frees them.
@safe struct HeldBytes {
    private var bytes: UnsafeMutableRawPointer?
    private(set) var count = 0

    /// Replaces the content with a copy of `source`.
    mutating func replace(with source: UnsafeRawBufferPointer) {
        if source.count > 0, let from = source.baseAddress {
            guard let moved = unsafe realloc(bytes, source.count) else { preconditionFailure("no memory for \(source.count) bytes") }
            unsafe bytes = moved
            unsafe memcpy(moved, from, source.count)
        }
        count = source.count
    }

    /// Copies the bytes to the front of `buffer`, which must be large enough.
    func copy(to buffer: UnsafeMutableRawBufferPointer) {
        if count > 0, let from = unsafe bytes, let to = buffer.baseAddress { unsafe memcpy(to, from, count) }
    }

    mutating func free() {
        unsafe Glibc.free(bytes)
        unsafe bytes = nil
        count = 0
    }
}

/// The connections of one worker by slot. Owned by the worker's thread and released by `free()`.
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
