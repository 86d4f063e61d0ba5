internal import CLibWebSockets
internal import Glibc
package import HubCore
internal import Synchronization

/// Wakes one loop from any thread; several wakes before the loop runs count as one.
package final class LoopWaker: Sendable {
    /// An event counter of the kernel (eventfd(2)). Nobody reads it: each write is an event of its own.
    let descriptor: Int32
    private let isAwaited = Atomic<Bool>(false)

    init() throws(TransportError) {
        descriptor = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
        guard descriptor >= 0 else { throw TransportError(system: "cannot start an event loop") }
    }

    deinit {
        if descriptor >= 0 { Descriptor.close(descriptor) }
    }

    /// Never blocks. No effect once the loop has ended.
    package func wake() {
        guard !isAwaited.exchange(true, ordering: .acquiringAndReleasing) else { return }
        var one: UInt64 = 1
        let count = unsafe write(descriptor, &one, MemoryLayout<UInt64>.size)
        assert(count == MemoryLayout<UInt64>.size, "a loop was not woken")
    }

    /// Whether the loop was woken since the last call. Everything that its callers left before is seen after it.
    func takeWake() -> Bool { isAwaited.exchange(false, ordering: .acquiringAndReleasing) }
}

extension Mailbox {
    /// A way into a loop: a message wakes it.
    package convenience init(waker: LoopWaker) {
        self.init { waker.wake() }
    }
}
