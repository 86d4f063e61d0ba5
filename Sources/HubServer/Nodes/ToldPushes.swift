internal import HubCore
internal import Logging
internal import Synchronization

/// Events of which other nodes have said that there are pushes for this one. One task reads them. Any thread.
///
/// Whatever is asked for during a read is one read after it. A look through all open pushes is heavy, and each fault asks for some.
/// After a failure this node alone tries again.
final class ToldPushes: Sendable {
    /// The pushes that a read asks for.
    enum Share: Sendable, Equatable {
        /// Pushes of these events.
        case events([String])
        /// All open pushes: some events are unknown. Leased ones are meant in these partitions alone, whose former owner is gone.
        case everything(leasedOf: PartitionSet)
    }

    private struct State {
        var events: Set<String> = []
        /// Partitions whose leased pushes are meant; nil: not everything is to be read.
        var everything: PartitionSet?
        /// Callers that wait until everything is read, by a read that begins after their call.
        var waiters: [CheckedContinuation<Void, Never>] = []
        var isReading = false

        mutating func add(_ share: Share) {
            switch share {
            case .everything(let leased): everything = (everything ?? PartitionSet()).union(leased)
            case .events(let more): events.formUnion(more)
            }
            guard everything != nil || events.count > waitingMax else { return }
            (everything, events) = (everything ?? PartitionSet(), [])
        }

        /// Nil: nothing is left, and the task ends.
        mutating func next() -> (share: Share, waiters: [CheckedContinuation<Void, Never>])? {
            if let leased = everything {
                defer { (everything, waiters) = (nil, []) }
                return (.everything(leasedOf: leased), waiters)
            }
            guard !events.isEmpty else {
                isReading = false
                return nil
            }
            let part = Array(events.prefix(readMax))
            events.subtract(part)
            return (.events(part), [])
        }
    }

    /// Events that wait at most. Beyond that everything is read.
    static let waitingMax = 100_000
    /// Events of one read.
    static let readMax = 100

    private let read: @Sendable (Share) async throws -> Void
    private let retryEvery: Duration
    private let logger: Logger
    private let state = Mutex(State())

    /// - Parameters:
    ///   - retryEvery: time between a failure and the next read.
    ///   - read: reads the pushes and hands them to the outbox. Called by one task at a time.
    init(retryEvery: Duration = .seconds(1), logger: Logger, read: @escaping @Sendable (Share) async throws -> Void) {
        self.retryEvery = retryEvery
        self.logger = logger
        self.read = read
    }

    /// Takes what another node has told.
    /// - Parameter events: empty: it does not know which.
    func take(_ events: [String]) {
        add(events.isEmpty ? .everything(leasedOf: PartitionSet()) : .events(events), nil)
    }

    /// Reads all open pushes, also those that the former owner of these partitions had leased. Returns once they are read.
    func takeAll(leasedOf partitions: PartitionSet) async {
        await withCheckedContinuation { add(.everything(leasedOf: partitions), $0) }
    }

    private func add(_ share: Share, _ waiter: CheckedContinuation<Void, Never>?) {
        let begins = state.withLock { state in
            state.add(share)
            if let waiter { state.waiters.append(waiter) }
            defer { state.isReading = true }
            return !state.isReading
        }
        if begins { Task { await readOn() } }
    }

    /// Reads until nothing is left.
    private func readOn() async {
        while let (share, waiters) = state.withLock({ $0.next() }) {
            do {
                try await read(share)
                for waiter in waiters { waiter.resume() }
            } catch {
                logger.error("pushes of other nodes could not be read; trying again", metadata: ["error": "\(error)"])
                state.withLock { state in
                    state.add(share)
                    state.waiters += waiters
                }
                try? await Task.sleep(for: retryEvery)
            }
        }
    }
}
