internal import HubCore
internal import HubDelivery
internal import Synchronization

/// Runs a `TokenJudge`: reports condemned tokens, and wakes it when a wait ends. Any thread.
final class TokenCourt: Sendable {
    private struct State {
        var judge: TokenJudge
        var isWaiting = false
    }

    private let provider: PushProvider
    private let time: any TimeSource
    private let reports: PushReports
    /// Called once whenever bad tokens become too many.
    private let tripped: @Sendable () -> Void
    private let state: Mutex<State>

    init(
        _ rules: TokenJudge.Rules, provider: PushProvider, time: any TimeSource, reports: PushReports,
        tripped: @escaping @Sendable () -> Void
    ) {
        self.provider = provider
        self.time = time
        self.reports = reports
        self.tripped = tripped
        state = Mutex(State(judge: TokenJudge(rules)))
    }

    /// - Parameter isProven: whether the gateway had accepted the token before.
    func good(_ token: String, isProven: Bool) {
        let now = time.monotonicNanoseconds
        let (ruling, isDue) = state.withLock { state in
            (state.judge.good(token, isProven: isProven, now: now), !state.isWaiting && state.judge.nextDue != nil)
        }
        settle(ruling)
        if isDue { wait() }
    }

    /// Notes that another token of the same credentials, topic and project was accepted elsewhere.
    func works() {
        state.withLock { $0.judge.works() }
        wait()
    }

    /// - Parameter isProven: whether the gateway had accepted the token before.
    /// - Returns: whether the token may still be removed, or the reason why it is kept.
    func bad(_ token: String, app: String, isProven: Bool) -> TokenJudge.Fate {
        let (now, wall) = (time.monotonicNanoseconds, time.wallMilliseconds)
        let (fate, ruling) = state.withLock { $0.judge.bad(token, app: app, isProven: isProven, since: wall, now: now) }
        settle(ruling)
        wait()
        return fate
    }

    func reset() { state.withLock { $0.judge.reset() } }

    /// Decides about tokens whose wait has ended.
    func sweep() {
        let now = time.monotonicNanoseconds
        settle(state.withLock { $0.judge.due(now: now) })
    }

    private func settle(_ ruling: TokenJudge.Ruling) {
        for held in ruling.condemned { reports.condemn(DeadToken(app: held.app, provider: provider, token: held.token, since: held.since)) }
        if ruling.hasTripped { tripped() }
    }

    /// One task at a time sleeps until the oldest held token's wait ends.
    private func wait() {
        let now = time.monotonicNanoseconds
        let due: UInt64? = state.withLock { state in
            guard !state.isWaiting, let due = state.judge.nextDue else { return nil }
            state.isWaiting = true
            return due
        }
        guard let due else { return }
        // At least a second, so that a stopped clock causes no busy loop.
        let pause = max(.seconds(1), Duration.nanoseconds(Int64(clamping: due > now ? due - now : 0)))
        Task { [weak self] in
            do { try await Task.sleep(for: pause) } catch { return }
            guard let self else { return }
            state.withLock { $0.isWaiting = false }
            sweep()
            wait()
        }
    }
}
