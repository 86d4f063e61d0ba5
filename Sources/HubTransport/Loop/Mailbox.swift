internal import CLibWebSockets
internal import Synchronization

/// Wakes one loop from any thread; several wakes before the loop runs count as one.
@safe package final class LoopWaker: @unchecked Sendable {
    // Guard: the pointer is written once before the loop's thread starts, and `uv_async_send` is libuv's one call that
    // is legal from any thread. `closed` keeps late callers away from a handle that is gone.
    private let async: UnsafeMutablePointer<uv_async_t>
    private let closed = Mutex(false)

    init(async: UnsafeMutablePointer<uv_async_t>) {
        unsafe self.async = unsafe async
    }

    /// Never blocks for longer than another wake takes. No effect once the loop has ended.
    package func wake() {
        closed.withLock { closed in
            if !closed { unsafe uv_async_send(async) }
        }
    }

    /// Called by the loop's thread before it closes the handle.
    func close() {
        closed.withLock { $0 = true }
    }
}

/// The only way into a loop: messages are appended under a lock and drained all at once, in order, per wake.
///
/// Posts by one thread arrive in the order of posting. Presence snapshots and their deltas rely on this order, as do
/// role assignments and the publishes after them.
package final class Mailbox<Message: Sendable>: Sendable {
    private let inbox = Mutex<[Message]>([])
    private let occupation = Atomic(false)
    private let wake: @Sendable () -> Void

    package convenience init(waker: LoopWaker) {
        self.init { waker.wake() }
    }

    /// - Parameter wake: called when something is posted into the empty box, on the thread that posts it.
    package init(wake: @escaping @Sendable () -> Void) {
        self.wake = wake
    }

    /// Appends a message that must not be lost. Such messages are bounded by their causes, one or two per connection or
    /// reply.
    package func post(_ message: Message) {
        let first = inbox.withLock { inbox in
            inbox.append(message)
            occupation.store(true, ordering: .releasing)
            return inbox.count == 1
        }
        if first { wake() }
    }

    /// Appends a message unless `limit` are waiting already; false when not taken, which the sender must report.
    package func offer(_ message: Message, limit: Int) -> Bool {
        let (taken, first) = inbox.withLock { inbox in
            if inbox.count >= limit { return (false, false) }
            inbox.append(message)
            occupation.store(true, ordering: .releasing)
            return (true, inbox.count == 1)
        }
        if first { wake() }
        return taken
    }

    /// Whether messages wait: a check without the lock, cheap enough for every request. The mark is set before a post
    /// returns, so a thread that knows of the post sees it.
    package var isOccupied: Bool { occupation.load(ordering: .acquiring) }

    /// Takes everything posted so far. The inbox takes over the storage of `messages`.
    package func drain(into messages: inout [Message]) {
        messages.removeAll(keepingCapacity: true)
        inbox.withLock { inbox in
            occupation.store(false, ordering: .relaxed)
            swap(&inbox, &messages)
        }
    }
}
