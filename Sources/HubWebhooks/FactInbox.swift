internal import HubChannels
internal import HubCore
internal import PusherProtocol
internal import Synchronization

/// Facts reported by the loops and not processed yet. `add` takes a short lock and appends: a loop never waits for more.
final class FactInbox: Sendable {
    struct Report: Sendable {
        let facts: [ChannelFact]
        /// Time of the report, on the monotonic clock.
        let at: UInt64
    }

    private struct State {
        var reports: [Report] = []
        var bytes = 0
        var dropped = 0
        var wakePending = false
        var isClosed = false
    }

    private let state = Mutex(State())
    private let time: any TimeSource
    private let bytesMax: Int

    init(time: any TimeSource, bytesMax: Int) {
        self.time = time
        self.bytesMax = bytesMax
    }

    /// Adds facts in order; drops and counts those that do not fit. True if the reader must be woken.
    func add(_ facts: [ChannelFact]) -> Bool {
        let sizes = facts.map(Self.footprint)
        return state.withLock { state in
            guard !state.isClosed else { return false }
            var kept = 0
            while kept < facts.count, state.bytes + sizes[kept] <= bytesMax {
                state.bytes += sizes[kept]
                kept += 1
            }
            state.dropped += facts.count - kept
            // Stamped under the lock, so that reports' times never decrease.
            if kept > 0 {
                state.reports.append(
                    Report(facts: kept == facts.count ? facts : Array(facts.prefix(kept)), at: time.monotonicNanoseconds))
            }
            defer { state.wakePending = true }
            return !state.wakePending
        }
    }

    /// Everything added since the last call, and the number of facts dropped since then.
    func takeAll() -> (reports: [Report], dropped: Int) {
        state.withLock { state in
            defer {
                state.reports = []
                state.bytes = 0
                state.dropped = 0
                state.wakePending = false
            }
            return (state.reports, state.dropped)
        }
    }

    /// Refuses all further facts.
    func close() { state.withLock { $0.isClosed = true } }

    /// Approximate size of a fact in memory: its own size plus its external texts.
    private static func footprint(_ fact: ChannelFact) -> Int {
        let own = 128 + fact.channel.text.utf8.count
        return switch fact.event {
        case .clientEvent(let name, let data, _, _): own + name.utf8.count + data.utf8.count
        case .memberAdded(let user), .memberRemoved(let user): own + user.utf8.count
        case .occupied, .vacated, .cacheMiss, .subscriptionCount: own
        }
    }
}
