internal import HubCore
internal import HubDelivery

/// Publishes with an idempotency key that this node is taking as an owner: each is decided once, and whoever asks meanwhile gets the
/// same answer. Later the store knows it (`KeyedPlace`).
///
/// A backend that hears nothing repeats its request, mostly at another node. The first one may still be under way, or its answer was late.
/// A node that is busy must not read the store again for each repetition: it would be busy with these alone. A value that one task owns. As
/// many keys as publishes wait in the delivery task.
struct KeyedPublishes {
    struct Asker {
        let node: UInt64
        let ticket: UInt64
    }

    private var underWay: [String: [Asker]] = [:]
    /// Places that this node has published: the request's digest, the event's id if it has a policy, and when.
    private var published = RecentTable<String, (digest: [UInt8], event: String?, at: Int64)>(countMax: 10_000, ageMax: Self.ageMax)
    /// Ten minutes, far less than a key counts.
    private static let ageMax: Int64 = 600_000

    /// Somebody asks under a key.
    /// - Returns: whether it is the first one, who is to be answered with `finish`.
    mutating func ask(_ key: String, _ asker: Asker) -> Bool {
        underWay[key, default: []].append(asker)
        return underWay[key]?.count == 1
    }

    /// The publish under the key is decided, and stored.
    /// - Returns: everybody who asked.
    mutating func finish(_ key: String) -> [Asker] { underWay.removeValue(forKey: key) ?? [] }

    /// Remembers what is stored.
    /// - Parameters:
    ///   - event: its id; nil: it has no policy.
    ///   - now: milliseconds of a clock that never goes back.
    mutating func remember(_ place: KeyedPlace, event: String?, now: Int64) {
        published.set((place.digest, event, now), for: place.name, now: now)
    }

    /// The id of the event that this node has published here. Nil: it remembers none. Nil in it: an event without a policy.
    func event(of place: KeyedPlace, now: Int64) -> String?? {
        guard let known = published[place.name], known.digest == place.digest, now - known.at < Self.ageMax else { return nil }
        return .some(known.event)
    }
}
