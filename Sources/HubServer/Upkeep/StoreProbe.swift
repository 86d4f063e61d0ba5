internal import HubStorage
internal import Logging

/// Writes to a store that fails, once a second, so that the hub is ready again when the disk is, also when nobody publishes.
struct StoreProbe: Sendable {
    let store: SQLiteStore
    let logger: Logger

    private static let period = Duration.seconds(1)

    /// The sentence of `/ready` for a store that fails.
    static func refusal(_ health: StoreHealth) -> String? {
        health.isFailing ? "the store takes no writes: see whether its disk is full, and what the log says" : nil
    }

    /// Works until its task is cancelled.
    func run() async {
        var wasFailing = false
        while true {
            do { try await Task.sleep(for: Self.period) } catch { return }
            wasFailing = await look(wasFailing: wasFailing)
        }
    }

    /// - Returns: whether the store fails.
    func look(wasFailing: Bool) async -> Bool {
        let health = store.health
        if health.isFailing {
            if !wasFailing {
                logger.error("not ready: the store takes no writes", metadata: ["error": "\(health.error?.description ?? "")"])
            }
            // The store's health has its error.
            try? await store.probe()
        }
        let isFailing = store.health.isFailing
        if !isFailing, wasFailing || health.isFailing { logger.notice("ready again: the store takes writes") }
        return isFailing
    }
}
