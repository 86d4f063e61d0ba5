internal import HubCore
internal import HubDelivery

/// Watches tokens that a gateway calls dead: a `TokenJudge` decides, and this reports the condemned tokens and wakes when a wait ends.
/// Any thread.
final class DeadTokenWatch: Sendable {
    private struct State {
        var judge: TokenJudge
        /// A task sleeps until the next decision is due.
        var isWaiting = false

        /// The time until which a new task has to sleep; nil: nothing waits, or a task sleeps already.
        mutating func nextSleep() -> UInt64? {
            guard !isWaiting, let due = judge.nextDue else { return nil }
            isWaiting = true
            return due
        }
    }

    private let provider: PushProvider
    private let time: any TimeSource
    private let reports: PushReports
    /// Called once whenever bad tokens become too many.
    private let tripped: @Sendable () -> Void
    private let state: Guarded<State>

    init(
        _ rules: TokenJudge.Rules, provider: PushProvider, time: any TimeSource, reports: PushReports,
        tripped: @escaping @Sendable () -> Void
    ) {
        self.provider = provider
        self.time = time
        self.reports = reports
        self.tripped = tripped
        state = Guarded(State(judge: TokenJudge(rules)))
    }

    /// - Parameter isProven: whether the gateway had accepted the token before.
    func good(_ token: String, isProven: Bool) { decide { $0.good(token, isProven: isProven, now: $1) } }

    /// Notes that another token of the same credentials, topic and project was accepted elsewhere.
    func works() {
        decide { judge, _ in
            judge.works()
            return TokenJudge.Ruling()
        }
    }

    /// - Parameter isProven: whether the gateway had accepted the token before.
    /// - Returns: whether the token may still be removed, or the reason why it is kept.
    func bad(_ token: String, app: String, isProven: Bool) -> TokenJudge.Fate {
        let wall = time.wallMilliseconds
        var fate = TokenJudge.Fate.open
        decide { judge, now in
            let (said, ruling) = judge.bad(token, app: app, isProven: isProven, since: wall, now: now)
            fate = said
            return ruling
        }
        return fate
    }

    func reset() { state.withLock { $0.judge.reset() } }

    /// Decides about tokens whose wait has ended.
    func sweep() { decide { $0.due(now: $1) } }

    /// Lets the judge decide, carries out the ruling, and has a task sleep until the next one is due.
    private func decide(_ body: (inout TokenJudge, _ now: UInt64) -> TokenJudge.Ruling) {
        let (ruling, due, now) = state.withLock(at: time) { state, now in
            let ruling = body(&state.judge, now)
            return (ruling, state.nextSleep(), now)
        }
        for held in ruling.condemned { reports.condemn(DeadToken(app: held.app, provider: provider, token: held.token, since: held.since)) }
        if ruling.hasTripped { tripped() }
        if let due { sleep(until: due, now: now) }
    }

    /// One task at a time sleeps until the oldest held token's wait ends.
    private func sleep(until due: UInt64, now: UInt64) {
        // At least a second, so that a stopped clock causes no busy loop.
        let pause = max(.seconds(1), Duration.nanoseconds(Int64(clamping: due > now ? due - now : 0)))
        Task { [weak self] in
            do { try await Task.sleep(for: pause) } catch { return }
            self?.awake()
        }
    }

    private func awake() {
        state.withLock { state in
            assert(state.isWaiting, "two tasks slept")
            state.isWaiting = false
        }
        sweep()
    }
}
