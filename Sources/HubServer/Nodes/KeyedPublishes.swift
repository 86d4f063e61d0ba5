internal import HubDelivery

/// Publishes with an idempotency key that this node has taken as an owner: each is answered once, and the same to all who ask.
///
/// A backend that hears nothing repeats its request, mostly at another node. The first one may still be under way, or its answer may not
/// have come to the store. A value that one task owns.
struct KeyedPublishes {
    struct Asker {
        let node: UInt64
        let ticket: UInt64
    }

    private enum Entry {
        case underWay([Asker])
        case answered(PublishedPart)
    }

    /// Milliseconds for which an answer is kept; later the store has it.
    static let keptMilliseconds: Int64 = 60_000

    private var entries = RecentTable<String, Entry>(countMax: 100_000, ageMax: KeyedPublishes.keptMilliseconds)

    /// Somebody asks under a key.
    /// - Returns: nil: the first one, who is to be answered with `finish`. Else the answer, or nothing yet.
    mutating func ask(_ key: String, _ asker: Asker, now: Int64) -> PublishedPart?? {
        switch entries[key] {
        case nil:
            entries.set(.underWay([asker]), for: key, now: now)
            return nil
        case .underWay(let askers):
            entries.set(.underWay(askers + [asker]), for: key, now: now)
            return .some(nil)
        case .answered(let part): return part
        }
    }

    /// - Returns: everybody who asked. After a refusal the next request begins afresh.
    mutating func finish(_ key: String, _ part: PublishedPart, now: Int64) -> [Asker] {
        guard case .underWay(let askers) = entries[key] else { return [] }
        if case .taken = part { entries.set(.answered(part), for: key, now: now) } else { entries.remove(key) }
        return askers
    }
}
