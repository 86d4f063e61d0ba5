internal import CMemory
internal import Synchronization

/// Gives memory back to the system after large events, and after crowds.
///
/// glibc keeps freed memory in arenas, each shared by a few threads. Different threads decide, store and send each event, so several arenas
/// would each keep the memory of the largest event. A TLS handshake takes 44 KB for a while, between blocks that stay as long as the
/// connection. After a crowd has left, a few remaining blocks would hold the memory of all.
final class MemoryRelief: Sendable {
    /// Deliveries of one commit from which on it is worth the while: some megabytes.
    static let deliveriesMin = 10_000
    /// Connections that have come or gone from which on it is worth the while: some megabytes.
    static let connectionsMin = 1_000
    /// By then what was read and decided for the event, or taken by handshakes, is free.
    static let pause = Duration.seconds(2)

    private let wait: @Sendable () async -> Void
    private let trim: @Sendable () -> Void
    private let isPlanned = Mutex(false)
    private let connections = Atomic<Int>(0)

    /// - Parameters:
    ///   - wait: lasts for `pause`.
    ///   - trim: gives back what is free. Takes some milliseconds, in which threads that share an arena with it may wait.
    init(
        // The task is nobody's to cancel.
        wait: @escaping @Sendable () async -> Void = { try? await Task.sleep(for: pause) },
        trim: @escaping @Sendable () -> Void = { tandem_memory_trim() }
    ) {
        self.wait = wait
        self.trim = trim
    }

    /// So many deliveries were committed together. Callable from any thread; returns at once.
    func committed(deliveries: Int) {
        if deliveries >= Self.deliveriesMin { plan() }
    }

    /// A connection has come or gone. Callable from any thread; returns at once.
    func connectionChanged() {
        if connections.wrappingAdd(1, ordering: .relaxed).newValue % Self.connectionsMin == 0 { plan() }
    }

    private func plan() {
        let isFirst = isPlanned.withLock { isPlanned in
            defer { isPlanned = true }
            return !isPlanned
        }
        guard isFirst else { return }
        Task { [self] in
            await wait()
            isPlanned.withLock { $0 = false }
            trim()
        }
    }
}
