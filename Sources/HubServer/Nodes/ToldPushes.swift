internal import HubCore
internal import Logging
internal import Synchronization

/// Events of which other nodes have said that there are pushes for this one. One task reads them. Any thread.
///
/// An event that is told again while it waits is read once. After a failure this node alone tries again.
final class ToldPushes: Sendable {
    /// The pushes that a read asks for.
    enum Share: Sendable, Equatable {
        /// Pushes of these events.
        case events([String])
        /// All open pushes: some events are unknown.
        case everything
    }

    private struct State {
        var events: Set<String> = []
        var isEverything = false
        var isReading = false

        mutating func add(_ share: Share) {
            switch share {
            case .everything: isEverything = true
            case .events(let more): events.formUnion(more)
            }
            guard isEverything || events.count > waitingMax else { return }
            (isEverything, events) = (true, [])
        }

        /// Nil: nothing is left, and the task ends.
        mutating func next() -> Share? {
            if isEverything {
                isEverything = false
                return .everything
            }
            guard !events.isEmpty else {
                isReading = false
                return nil
            }
            let part = Array(events.prefix(readMax))
            events.subtract(part)
            return .events(part)
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
        let begins = state.withLock { state in
            state.add(events.isEmpty ? .everything : .events(events))
            defer { state.isReading = true }
            return !state.isReading
        }
        if begins { Task { await readOn() } }
    }

    /// Reads until nothing is left.
    private func readOn() async {
        while let share = state.withLock({ $0.next() }) {
            do {
                try await read(share)
            } catch {
                logger.error("pushes of another node could not be read; trying again", metadata: ["error": "\(error)"])
                state.withLock { $0.add(share) }
                try? await Task.sleep(for: retryEvery)
            }
        }
    }
}
