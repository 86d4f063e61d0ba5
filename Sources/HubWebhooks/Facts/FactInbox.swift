internal import HubCore
internal import PusherProtocol
internal import Synchronization

/// Facts reported by the loops and not processed yet, bounded in bytes. `add` takes a short lock and appends: a loop never waits for more.
final class FactInbox: Sendable {
    struct Report: Sendable {
        let facts: [ChannelFact]
        /// Approximate size of all facts that waited when this report came, its own included.
        let bytesWaiting: Int
        /// Time of the report, on the monotonic clock.
        let at: UInt64
    }

    private let reports = Mailbox<Report> {}
    private let dropped = Atomic(0)
    private let time: any TimeSource
    private let bytesMax: Int

    init(time: any TimeSource, bytesMax: Int) {
        self.time = time
        self.bytesMax = bytesMax
    }

    /// Adds facts in order; drops and counts those that do not fit. True if the reader must be woken.
    func add(_ facts: [ChannelFact]) -> Bool {
        let sizes = facts.map(\.footprint)
        let offer = reports.offer { waiting in
            var bytes = waiting.last?.bytesWaiting ?? 0
            var kept = 0
            while kept < facts.count, bytes + sizes[kept] <= bytesMax {
                bytes += sizes[kept]
                kept += 1
            }
            dropped.add(facts.count - kept, ordering: .relaxed)
            // An empty report still tells the reader of the dropped facts.
            if kept == 0, !waiting.isEmpty { return nil }
            // Stamped under the lock, so that reports' times never decrease.
            let now = time.monotonicNanoseconds
            assert(waiting.last.map { $0.at <= now } ?? true, "the monotonic clock went back")
            return Report(facts: kept == facts.count ? facts : Array(facts.prefix(kept)), bytesWaiting: bytes, at: now)
        }
        return offer == .first
    }

    /// Everything added since the last call, and the number of facts dropped since then.
    func takeAll() -> (reports: [Report], dropped: Int) {
        var taken: [Report] = []
        reports.drain(into: &taken)
        return (taken, dropped.exchange(0, ordering: .relaxed))
    }

    /// Refuses all further facts.
    func close() { reports.close() }
}
