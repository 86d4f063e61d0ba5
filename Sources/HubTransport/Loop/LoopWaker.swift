internal import CLibWebSockets
package import HubCore
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

extension Mailbox {
    /// A way into a loop: a message wakes it.
    package convenience init(waker: LoopWaker) {
        self.init { waker.wake() }
    }
}
