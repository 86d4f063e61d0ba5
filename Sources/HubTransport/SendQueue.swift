/// What one slow connection still has to be sent, in order: references to shared batches, bounded in bytes and items.
///
/// libwebsockets keeps the remainder of the one write that the kernel took only in part; everything after that write
/// waits here. Exists only while a connection is behind.
struct SendQueue {
    private var batches: [Batch] = []
    private var head = 0
    /// Bytes that wait here, without libwebsockets' own remainder.
    private(set) var queuedBytes = 0

    /// A connection with this many batches waiting is slow whatever their size: the entries themselves are memory.
    static let batchesMax = 8192

    var isEmpty: Bool { head == batches.count }

    /// False: the batch would exceed the bounds, was not taken, and the connection has to go (close code 4100).
    mutating func append(_ batch: Batch, queuedBytesMax: Int) -> Bool {
        let count = unsafe batch.bytes.count
        guard queuedBytes + count <= queuedBytesMax, batches.count - head < Self.batchesMax else { return false }
        batches.append(batch)
        queuedBytes += count
        return true
    }

    mutating func popFirst() -> Batch? {
        guard head < batches.count else { return nil }
        let batch = batches[head]
        head += 1
        unsafe queuedBytes -= batch.bytes.count
        // Moves the rest down only when half of the array is spent, so that a drain costs linear time in all.
        if head * 2 >= batches.count {
            batches.removeFirst(head)
            head = 0
        }
        return batch
    }
}
