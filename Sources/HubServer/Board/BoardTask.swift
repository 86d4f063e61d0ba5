internal import HubAPI
internal import HubCore
internal import HubScaleOut

/// Looks at the board of the nodes again and again, for live tails, for numbers and for sessions of the console. While nobody has left
/// anything, no question goes out: the node's beats tell. One task.
struct BoardTask: Sendable {
    let relay: LiveRelay
    let numbers: NumbersRelay
    /// Nil: the hub has no console.
    let console: ConsoleAPI?
    let board: @Sendable () -> NodeBoard
    /// Whether others may have left something.
    let hasBoard: @Sendable () -> Bool
    let time: any TimeSource

    /// Time between two looks while somebody listens to a live tail, and otherwise.
    private static let busyEvery: Duration = .milliseconds(100)
    private static let idleEvery: Duration = .milliseconds(250)
    /// Time between two exchanges of numbers and sessions while somebody listens.
    private static let exchangeEvery: Duration = .milliseconds(500 - Tick.lateMax)

    /// Runs until its task is cancelled. While Redis does not answer, nothing is told or learnt.
    func run() async {
        var exchangedAt: ContinuousClock.Instant?
        while !Task.isCancelled {
            do throws(RedisFailure) {
                if isNeeded {
                    try await relay.turn()
                    if exchangedAt.map({ ContinuousClock.now - $0 >= Self.exchangeEvery }) ?? true {
                        exchangedAt = .now
                        try await numbers.turn(board())
                        try await exchangeSignOuts()
                    }
                }
            } catch {
                // Said by the metrics of the backplane, and by the answers of live tails.
            }
            do { try await Tick.wait(relay.isBusy ? Self.busyEvery : Self.idleEvery) } catch { return }
        }
    }

    /// Whether this node has something for the others, or something of theirs that may be over, or the others have left something.
    private var isNeeded: Bool {
        relay.isBusy || numbers.isBusy || hasBoard() || console?.signedOut(now: time.wallSeconds).isEmpty == false
    }

    /// Every node tells its own sign-outs each time, so a Redis that has lost its memory knows them again.
    private func exchangeSignOuts() async throws(RedisFailure) {
        guard let console else { return }
        let now = time.wallSeconds
        console.noteSignedOut(try await board().signedOut(console.signedOut(now: now), now: now), now: now)
    }
}
