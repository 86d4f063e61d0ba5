internal import HubCore
internal import HubDelivery
internal import Synchronization

/// Tells how old something in the store has to be called to be old for certain, whatever the wall clock did meanwhile.
///
/// Rows bear the wall clock's time of their making. Where the clock was set forward since, they look older than they are. So an age is
/// measured by the slowest of the clocks that were in force during it: nothing is forgotten early, and after that age the clock
/// as it is now counts alone. A clock that was set back makes rows look younger, and they are kept for that much longer.
final class RetentionClock: Sendable {
    /// How far the wall clock was ahead of the monotonic one, until when. Both in milliseconds.
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

    /// Steps that are told apart; of more the two oldest count as one.
    static let stepsMax = 64
    /// Nothing is kept for a time that is longer than this.
    private static let lifeMax = TokenAge.expiredAfterMilliseconds
    /// From this on the store and the clock do not agree, in milliseconds: a day.
    static let doubtMilliseconds: Int64 = 86_400_000

    /// - Parameter newest: the latest time that the store knows, in milliseconds since 1970; nil: it is empty. How long nothing ran since
    ///   then only the wall clock says, and it may be wrong: what is older counts as if no time had passed.
    init(time: any TimeSource, newest: Int64?) {
        self.time = time
        var state = State()
        _ = state.steps.look(time)
        let now = Self.milliseconds(time)
        if let newest { state.former.append(Lead(milliseconds: newest - now, endedAt: now)) }
        self.state = Mutex(state)
    }

    private static func milliseconds(_ time: any TimeSource) -> Int64 { Int64(clamping: time.monotonicNanoseconds / 1_000_000) }

    /// The log line of a start where the store and the clock do not agree.
    static func doubt(newest: Int64?, now: Int64) -> String? {
        guard let newest, abs(now - newest) >= doubtMilliseconds else { return nil }
        let days = abs(now - newest) / doubtMilliseconds
        return now > newest
            ? "the clock is \(days) days ahead of what the store saw last: what is kept for a time is kept for that much longer"
            : "the clock is \(days) days behind what the store saw last: nothing is forgotten until it has caught up"
    }

    /// Before this time, in milliseconds since 1970, everything has lived for as long, in milliseconds.
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
