import Synchronization

/// Where the rows of recent events lie, so that receipts are written without a search. An entry never changes.
final class RecentFanouts: Sendable {
    struct Place: Sendable, Equatable {
        let number: Int64
        let day: Int32
        let committedAt: Int64
    }

    private struct State {
        var young: [String: Place] = [:]
        var old: [String: Place] = [:]
    }

    /// Entries of one generation; two are kept.
    static let generationMax = 50_000
    private let state = Mutex(State())

    subscript(_ event: String) -> Place? { state.withLock { $0.young[event] ?? $0.old[event] } }

    func note(_ places: [String: Place]) {
        state.withLock { state in
            if state.young.count >= Self.generationMax { (state.old, state.young) = (state.young, [:]) }
            state.young.merge(places) { _, new in new }
        }
    }
}
