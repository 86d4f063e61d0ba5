internal import HubCore

/// Frames that wait for slow connections: one copy, shared by all of them.
///
/// Made only when the first connection cannot take a write at once. Belongs to one loop. Freed with its last reference.
@safe final class Batch {
    let bytes: UnsafeRawBufferPointer
    /// The batch's latest-only frames, in order.
    let latestOnly: [LatestOnlyFrame]
    private let memory: QueuedMemory

    /// Copies `bytes`, which belong to the caller and are reused after the turn.
    init(copying bytes: UnsafeRawBufferPointer, latestOnly: UnsafeBufferPointer<LatestOnlyFrame>, memory: QueuedMemory) {
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 16)
        unsafe copy.copyMemory(from: bytes)
        unsafe self.bytes = UnsafeRawBufferPointer(copy)
        self.latestOnly = unsafe Array(latestOnly)
        self.memory = memory
        memory.bytes += bytes.count
    }

    deinit {
        unsafe memory.bytes -= bytes.count
        unsafe bytes.deallocate()
    }
}

/// Bytes of memory that wait on one loop for slow connections. Counts each batch once, the library's buffers, the
/// queues' entries, and pending answers. Belongs to the loop.
final class QueuedMemory {
    var bytes = 0 {
        didSet { assert(bytes >= 0, "\(bytes) bytes wait, \(oldValue) before") }
    }
}
