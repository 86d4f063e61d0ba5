import HubCore
import HubDelivery
import Synchronization

/// Long recipient lists with each user's place, kept in memory: after an outage, returning clients ask for the same few lists.
///
/// A list never changes and its number is never reused, so no entry becomes stale.
final class SnapshotCache: Sendable {
    /// A list that was read.
    final class Entry: Sendable {
        let users: [String]
        private let places: [ExactText: Int]

        init(_ users: [String]) {
            self.users = users
            places = Dictionary(users.enumerated().map { (ExactText($1), $0) }, uniquingKeysWith: { first, _ in first })
        }

        /// The user's place in the list; nil when it is not on it.
        func place(of user: String) -> Int? { places[ExactText(user)] }
    }

    private struct State {
        var kept: [Int64: (entry: Entry, usedAt: UInt64)] = [:]
        var users = 0
        var clock: UInt64 = 0
        var unreadable: Set<Int64> = []

        /// Whether the users are those of the kept lists. Adds up few lists only.
        var isConsistent: Bool { users >= 0 && (kept.count > 64 || kept.values.reduce(0) { $0 + $1.entry.users.count } == users) }
    }

    /// Maximum of users in all cached lists together: about 20 MB.
    static let usersMax = 200_000
    /// Maximum of unreadable lists remembered, so that each is reported once.
    static let unreadableMax = 1_000
    private let state = Mutex(State())

    func entry(_ number: Int64) -> Entry? {
        state.withLock { state in
            state.clock += 1
            state.kept[number]?.usedAt = state.clock
            return state.kept[number]?.entry
        }
    }

    /// Reads a list that is not cached, and caches it if long.
    /// - Returns: nil if it cannot be read; `problem` is set the first time.
    func load(
        _ number: Int64, problem: inout StorageError?, read: (Int64) throws -> RecipientSnapshot?
    ) throws -> Entry? {
        guard let snapshot = try read(number) else {
            let isNew = state.withLock { state in
                state.unreadable.count < Self.unreadableMax && state.unreadable.insert(number).inserted
            }
            if isNew {
                problem = StorageError(
                    .unreadableRow, "a list of recipients cannot be read; who was told of its events is unknown (list \(number))")
            }
            return nil
        }
        let entry = Entry(snapshot.users)
        if RecipientColumns.isLarge(snapshot) { keep(entry, number) }
        return entry
    }

    private func keep(_ entry: Entry, _ number: Int64) {
        state.withLock { state in
            state.clock += 1
            if let old = state.kept.updateValue((entry, state.clock), forKey: number) { state.users -= old.entry.users.count }
            state.users += entry.users.count
            while state.users > Self.usersMax, state.kept.count > 1, let oldest = state.kept.min(by: { $0.value.usedAt < $1.value.usedAt })
            {
                state.kept[oldest.key] = nil
                state.users -= oldest.value.entry.users.count
            }
            assert(state.isConsistent, "\(state.users) users in \(state.kept.count) lists")
        }
    }
}
