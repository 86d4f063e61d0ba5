internal import HubCore
internal import HubDelivery
internal import Synchronization

/// Computes the time before which rows are certainly old enough, whatever the wall clock did.
///
/// Rows have the wall clock's time of their creation. If the clock was set forward since, they look older than they are. So a row's age is
/// measured by the slowest clock in force during that time, and nothing is removed early. Later, the present clock counts alone.
///
/// A clock that was set back makes rows look younger, so they are kept longer.
final class RetentionClock: Sendable {
    /// Lead of the wall clock over the monotonic one, and the end of its validity, both in milliseconds.
    private struct Lead {
        let milliseconds: Int64
        let endedAt: Int64
    }

    private struct State {
        var steps = ClockSteps()
        var former: [Lead] = []
    }

    private let state: Mutex<State>
    private let time: any TimeSource

    /// Most steps that are kept; of more, the two oldest are joined.
    static let stepsMax = 64
    /// Longest time for which anything is kept.
    private static let lifeMax = TokenAge.expiredAfterMilliseconds
    /// Difference between store and clock that is reported at a start, in milliseconds: a day.
    static let doubtMilliseconds: Int64 = 86_400_000

    /// - Parameter newest: latest time in the store, in milliseconds since 1970; nil if empty. Only the wall clock, which may be wrong,
    ///   knows how long nothing ran since. So older rows count as if no time had passed.
    init(time: any TimeSource, newest: Int64?) {
        self.time = time
        var state = State()
        _ = state.steps.look(time)
        let now = Self.milliseconds(time)
        if let newest { state.former.append(Lead(milliseconds: newest - now, endedAt: now)) }
        self.state = Mutex(state)
    }

    private static func milliseconds(_ time: any TimeSource) -> Int64 { Int64(clamping: time.monotonicNanoseconds / 1_000_000) }

    /// Log line for a start whose clock contradicts the store; nil if it does not.
    static func doubt(newest: Int64?, now: Int64) -> String? {
        guard let newest, abs(now - newest) >= doubtMilliseconds else { return nil }
        let days = abs(now - newest) / doubtMilliseconds
        return now > newest
            ? "the clock is \(days) days ahead of what the store saw last: what is kept for a time is kept for that much longer"
            : "the clock is \(days) days behind what the store saw last: nothing is forgotten until it has caught up"
    }

    /// Time in milliseconds since 1970 before which every row has lived for at least `life` milliseconds.
    func cutoff(life: Int64) -> Int64 {
        state.withLock { state in
            let now = Self.milliseconds(time)
            let wall = time.wallMilliseconds
            if let step = state.steps.look(wall: wall, monotonic: time.monotonicNanoseconds) {
                state.former.append(Lead(milliseconds: step.from - now, endedAt: now))
            }
            state.former.removeAll { $0.endedAt <= now - Self.lifeMax }
            if state.former.count > Self.stepsMax {
                let (first, second) = (state.former[0], state.former[1])
                state.former[0...1] = [Lead(milliseconds: min(first.milliseconds, second.milliseconds), endedAt: second.endedAt)]
            }
            let leads = state.former.filter { $0.endedAt > now - life }.map(\.milliseconds)
            return min(leads.min() ?? .max, wall - now) + now - life
        }
    }
}
