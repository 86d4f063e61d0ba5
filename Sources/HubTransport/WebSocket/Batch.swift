internal import HubCore

/// Frames that some slow connections still have to get: one copy, shared by all of them.
///
/// Made only when the first of a channel's subscribers cannot take a write at once; whoever keeps up never causes one.
/// Belongs to one loop. Freed with its last reference.
@safe final class Batch {
    let bytes: UnsafeRawBufferPointer
    /// Those of its frames that a newer one of their line makes needless, in order.
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

/// What waits on one loop for connections that are behind, in bytes of memory: each batch once however many wait for it, what the
/// library holds, and the entries of the queues. Belongs to the loop.
final class QueuedMemory {
    var bytes = 0
}
