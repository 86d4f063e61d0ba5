internal import HubDelivery

/// Publishes with an idempotency key that this node is taking as an owner: each is decided once, and whoever asks meanwhile gets the
/// same answer. Later the store knows it (`KeyedPlace`).
///
/// A backend that hears nothing repeats its request, mostly at another node. The first one may still be under way. A value that one task
/// owns. As many keys as publishes wait in the delivery task.
struct KeyedPublishes {
    struct Asker {
        let node: UInt64
        let ticket: UInt64
    }

    private var underWay: [String: [Asker]] = [:]

    /// Somebody asks under a key.
    /// - Returns: whether it is the first one, who is to be answered with `finish`.
    mutating func ask(_ key: String, _ asker: Asker) -> Bool {
        underWay[key, default: []].append(asker)
        return underWay[key]?.count == 1
    }

    /// The publish under the key is decided, and stored.
    /// - Returns: everybody who asked.
    mutating func finish(_ key: String) -> [Asker] { underWay.removeValue(forKey: key) ?? [] }
}
