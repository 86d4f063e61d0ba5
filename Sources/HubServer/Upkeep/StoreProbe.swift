internal import HubCore
internal import HubStorage
internal import Logging

/// Writes to a failing store once a second, so that the hub notices a working disk even if nobody publishes.
struct StoreProbe: Sendable {
    let store: any HubStore
    let logger: Logger

    private static let period = Duration.seconds(1)

    /// Message of `/ready` for a failing store; nil otherwise.
    static func refusal(_ health: StoreHealth) -> String? {
        health.isFailing ? "the store takes no writes: see whether its disk is full, and what the log says" : nil
    }

    /// Runs until the task is cancelled.
    func run() async {
        var wasFailing = false
        while true {
            do { try await Tick.wait(Self.period) } catch { return }
            wasFailing = await look(wasFailing: wasFailing)
        }
    }

    /// Writes to a failing store, and logs changes.
    /// - Returns: whether the store fails.
    func look(wasFailing: Bool) async -> Bool {
        let health = store.health
        if health.isFailing {
            if !wasFailing {
                logger.error("not ready: the store takes no writes", metadata: ["error": "\(health.error?.description ?? "")"])
            }
            // The store's health keeps the error.
            try? await store.probe()
        }
        let isFailing = store.health.isFailing
        if !isFailing, wasFailing || health.isFailing { logger.notice("ready again: the store takes writes") }
        return isFailing
    }
}
