internal import CMemory
internal import Synchronization

/// Returns memory to the system after large events, and after crowds.
///
/// glibc keeps freed memory in arenas, each shared by a few threads. Different threads decide, store and send an event, so several arenas
/// would each keep the memory of the largest one.
///
/// A TLS handshake takes 44 KB for a while, between blocks that live as long as the connection. After a crowd has left, a few remaining
/// blocks would hold the memory of all.
///
/// Trimming holds an arena's lock, and a loop that allocates waits for it: for some 0.1 ms per MB, or 0.6 ms on slow machines. So a crowd
/// that leaves is followed at once, in pieces of a few MB.
final class MemoryRelief: Sendable {
    /// Deliveries of one commit above which trimming pays: some megabytes.
    static let deliveriesMin = 10_000
    /// Connections that came or went after which trimming pays: some megabytes.
    static let connectionsMin = 1_000
    /// Connections that left after which trimming does not wait: 4 MB of TLS.
    static let leftMin = 256
    /// Time after which the memory of decisions or handshakes is free.
    static let pause = Duration.seconds(2)

    private let wait: @Sendable () async -> Void
    private let trim: @Sendable () -> Void
    private let isPlanned = Mutex(false)
    private let isDue = Atomic(false)
    private let connections = Atomic<Int>(0)
    private let left = Atomic<Int>(0)

    /// - Parameters:
    ///   - wait: returns after `pause`.
    ///   - trim: returns free memory to the system. Threads that share an arena may wait for it.
    init(
        // Nobody cancels the task.
        wait: @escaping @Sendable () async -> Void = { try? await Task.sleep(for: pause) },
        trim: @escaping @Sendable () -> Void = { tandem_memory_trim() }
    ) {
        self.wait = wait
        self.trim = trim
    }

    /// Notes that so many deliveries were committed together. Callable from any thread; returns at once.
    func committed(deliveries: Int) {
        if deliveries >= Self.deliveriesMin { plan() }
    }

    /// Notes that a connection came. Callable from any thread; returns at once.
    func connectionCame() { count() }

    /// Notes that a connection left. Callable from any thread; returns at once.
    func connectionLeft() {
        count()
        guard left.wrappingAdd(1, ordering: .relaxed).newValue % Self.leftMin == 0,
            isDue.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged
        else { return }
        Task { [self] in
            isDue.store(false, ordering: .relaxed)
            trim()
        }
    }

    private func count() {
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
