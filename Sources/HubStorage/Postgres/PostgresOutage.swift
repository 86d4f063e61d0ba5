import Synchronization

/// Whether PostgreSQL answers, by the last tries of all links. While it does not, one caller at a time tries again, and the others fail at
/// once.
final class PostgresOutage: Sendable {
    /// Time between two tries.
    static let retryEvery: Duration = .milliseconds(250)

    private struct State {
        var health = StoreHealth()
        /// Nil: it answers.
        var nextTryAt: ContinuousClock.Instant?
        var error: StorageError?
        var calls = PostgresCallFigures()
    }

    private let state = Mutex(State())
    /// The server's pulse, felt by all links.
    let pulse = PostgresPulse()

    var health: StoreHealth { state.withLock { $0.health } }
    /// For metrics.
    var calls: PostgresCallFigures { state.withLock { $0.calls } }

    /// A link made a connection.
    func connected() { state.withLock { $0.calls.connections += 1 } }

    /// A link's call took round trips.
    func took(_ roundTrips: Int, isWriter: Bool) {
        state.withLock { state in
            if isWriter { state.calls.writerRoundTrips += UInt64(roundTrips) } else { state.calls.otherRoundTrips += UInt64(roundTrips) }
        }
    }

    /// The error of a caller that must not try now; nil for who may.
    func refusal(at now: ContinuousClock.Instant = .now) -> StorageError? {
        state.withLock { state in
            guard let next = state.nextTryAt, let error = state.error else { return nil }
            if now < next {
                state.calls.refused += 1
                return error
            }
            state.nextTryAt = now + Self.retryEvery
            return nil
        }
    }

    /// The error for a caller that would only wait behind another one's try; nil if nobody knows better.
    var quickRefusal: StorageError? {
        state.withLock { state in
            guard let next = state.nextTryAt, ContinuousClock.now < next, let error = state.error else { return nil }
            state.calls.refused += 1
            return error
        }
    }

    /// A link has an answer of the server.
    /// - Parameter hasWritten: whether it is that of a commit. Answers to readers say nothing about a disk.
    func answered(hasWritten: Bool) {
        state.withLock { state in
            (state.nextTryAt, state.error) = (nil, nil)
            if hasWritten { state.health.recovered() }
        }
    }

    /// A link got no answer, or one that says that the server takes no writes.
    func failed(_ failure: PostgresFailure) {
        let error = StorageError(failure)
        state.withLock { state in
            state.calls.failed += 1
            state.health.failed(error, isFull: true)
            let isSilent = if case .lost = failure { true } else { false }
            state.nextTryAt = isSilent ? .now + Self.retryEvery : nil
            state.error = isSilent ? error : nil
        }
    }
}
