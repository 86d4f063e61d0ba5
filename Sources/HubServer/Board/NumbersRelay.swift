internal import HubCore
internal import HubScaleOut
internal import Synchronization

/// The numbers of all nodes, for the console's Now. While somebody looks, each node leaves its own on the board once a second.
///
/// One task turns it; `others` is asked on any thread.
final class NumbersRelay: Sendable {
    private struct State {
        /// Times are milliseconds of the monotonic clock.
        var askedAt: Int64 = .min / 2
        var turnedAt: Int64 = .min / 2
        /// Read for the next turn.
        var own: String?
        var others: [String: String] = [:]
    }

    /// Milliseconds between two turns.
    static let turnEvery: Int64 = 1_000 - Tick.lateMax
    /// Milliseconds after a question for which somebody counts as looking.
    static let looksFor: Int64 = 6_000

    private let read: @Sendable (_ done: @escaping @Sendable (String) -> Void) -> Void
    private let me: @Sendable () -> String
    private let living: @Sendable () -> Set<String>
    private let time: any TimeSource
    private let state = Mutex(State())

    /// - Parameters:
    ///   - read: makes the text for Prometheus and passes it to `done` once, on any thread.
    ///   - me: name of this run of the node.
    ///   - living: names of the nodes that live.
    init(
        read: @escaping @Sendable (_ done: @escaping @Sendable (String) -> Void) -> Void, me: @escaping @Sendable () -> String,
        living: @escaping @Sendable () -> Set<String>, time: any TimeSource
    ) {
        self.read = read
        self.me = me
        self.living = living
        self.time = time
    }

    /// The newest numbers of the other nodes, by their names. The first question finds nothing: the others hear of it within two seconds.
    func others() -> [String: String] {
        state.withLock { [now] state in
            state.askedAt = now
            return state.others
        }
    }

    /// Whether somebody looks here, or numbers of the last look are there.
    var isBusy: Bool { state.withLock { [now] in now - $0.askedAt < Self.looksFor || $0.own != nil || !$0.others.isEmpty } }

    /// One look at the board, at most once a second. Call again and again.
    func turn(_ board: NodeBoard) async throws(RedisFailure) {
        let (now, me) = (now, me())
        let due = state.withLock { state -> (isWanted: Bool, own: String?)? in
            guard now - state.turnedAt >= Self.turnEvery else { return nil }
            state.turnedAt = now
            defer { state.own = nil }
            return (now - state.askedAt < Self.looksFor, state.own)
        }
        guard let due else { return }
        let found = try await board.numbers(of: me, due.own.map { Array($0.utf8) }, isWanted: due.isWanted)
        let others = living().subtracting([me])
        state.withLock { state in
            state.others = found.all.filter { others.contains($0.key) }.mapValues { String(decoding: $0, as: UTF8.self) }
        }
        if found.isWanted { read { [weak self] text in self?.state.withLock { $0.own = text } } }
    }

    private var now: Int64 { Int64(time.monotonicNanoseconds / 1_000_000) }
}
