internal import HubCore
internal import HubDelivery
internal import Synchronization

/// Remembers for a moment how many recipients of large events are in which state, once nothing is under way. Counting them reads a row per
/// push, and a screen asks every few seconds. Any thread.
final class CountedEvents: Sendable {
    /// Members of an event in a list: its recipients by state.
    struct Counts: Sendable, Equatable {
        var recipients: Int
        var isOpen: Bool
        var states: JSONValue
    }

    private struct Entry {
        var counts: Counts
        var madeAt: UInt64
    }

    /// Events with fewer recipients are counted each time.
    static let recipientsMin = 1_000
    /// Nanoseconds for which counts are good.
    static let life: UInt64 = 30_000_000_000
    /// Events that are remembered. If exceeded, all are forgotten.
    static let countMax = 200

    private let time: any TimeSource
    private let entries = Mutex<[String: Entry]>([:])

    init(time: any TimeSource) { self.time = time }

    /// The counts that were made within `life`; nil: none were kept.
    subscript(event: String) -> Counts? {
        let now = time.monotonicNanoseconds
        return entries.withLock { entries in
            entries[event].flatMap { now - $0.madeAt < Self.life ? $0.counts : nil }
        }
    }

    /// Keeps counts if they are expensive, and no receipt or push is on its way.
    func keep(_ counts: Counts, of event: String) {
        let isMoving = counts.isOpen || counts.states[RecipientState.pushing.rawValue] != nil
        guard !isMoving, counts.recipients >= Self.recipientsMin else { return }
        let now = time.monotonicNanoseconds
        entries.withLock { entries in
            if entries.count >= Self.countMax { entries.removeAll() }
            entries[event] = Entry(counts: counts, madeAt: now)
        }
    }
}
