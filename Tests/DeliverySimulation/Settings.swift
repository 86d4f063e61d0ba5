/// Settings of a run. The same settings give the same run, step by step.
package struct SimulationSettings: Sendable {
    /// Everything that happens follows from it.
    package var seed: UInt64
    /// Event-recipient pairs to publish.
    package var pairs: Int
    package var channels = 40
    package var participantsPerChannel = 50
    /// Between two changes of rosters, sessions, definitions or the wall clock, on average, in milliseconds; 0: none.
    package var changeInterval: Int64 = 1_500
    /// Between two crashes of the hub, on average, in milliseconds; 0: none.
    package var crashInterval: Int64 = 60_000
    /// A rule that is broken on purpose, to see it caught.
    package var broken: BrokenRule?

    package init(seed: UInt64, pairs: Int) {
        self.seed = seed
        self.pairs = pairs
    }
}

/// Rules of delivery that the simulation can break in how it drives the parts.
package enum BrokenRule: String, CaseIterable, Sendable {
    /// An app in the background counts as on the screen when it answers.
    case backgroundSettles = "background-settles"
    /// Whoever is subscribed counts as having been sent every event.
    case ignoreTicket = "ignore-ticket"
    /// An app that says nothing of its state counts as one that said it is on the screen.
    case provisionalSettles = "provisional-settles"
    /// Pages are asked by PINGs, so that the PONG of a browser's network process counts as their answer.
    case networkProcessProves = "network-process-proves"
    /// Coming back cancels what is pending.
    case returnCancels = "return-cancels"
    /// Recipients count as done when their first device is pushed to.
    case halfSettles = "half-settles"
    /// Frames go out before the commit.
    case publishBeforeCommit = "publish-before-commit"
    /// After a crash nobody looks at what was open.
    case noRecovery = "no-recovery"
    /// Receipts are forgotten: everybody is pushed to.
    case ignoreReceipts = "ignore-receipts"
    /// Nobody tells the escalation when the event expires.
    case forgetLifetime = "forget-lifetime"
    /// After a crash, one device of a participant stands for all, also where each stands for itself.
    case recoverTogether = "recover-together"
    /// A push that fell due while the store was slow goes before the receipts that came meanwhile.
    case dueBeforeReceipts = "due-before-receipts"
    /// A push that falls due while a loop is late goes before the receipts that have come to the loop.
    case dueBeforeLoops = "due-before-loops"
    /// Commits forget who is waited for.
    case presenceDecides = "presence-decides"
    /// A publish whose commit failed goes out all the same.
    case failedGoesOut = "failed-goes-out"
    /// Pushes and settlements that the store refused are not written again.
    case dropFailedWrite = "drop-failed-write"
    /// Loops keep the subscriptions of people who were removed.
    case keepRemoved = "keep-removed"
    /// A change of roles is not told to delivery.
    case roleUnheard = "role-unheard"
    /// Publishes after a reload do not wait for the loops.
    case reloadAtOnce = "reload-at-once"
    /// The plan does not look at the wall clock's steps.
    case ignoreClockSteps = "ignore-clock-steps"
    /// The outbox is not told for how long a gateway wants no further push.
    case ignoreRetryAfter = "ignore-retry-after"
    /// Tokens that a gateway called dead stay.
    case keepDeadTokens = "keep-dead-tokens"
    /// A push whose receipt came during its attempt is tried again all the same.
    case retryWithdrawn = "retry-withdrawn"
    /// Lanes let pushes in while they stand still.
    case stoppedLaneAdmits = "stopped-lane-admits"

    /// Whether the rule matters only while rosters, definitions or clocks change.
    package var concernsChanges: Bool {
        switch self {
        case .keepRemoved, .roleUnheard, .reloadAtOnce, .ignoreClockSteps, .keepDeadTokens: true
        default: false
        }
    }
}

/// Findings of a run.
package struct SimulationReport: Sendable {
    package var seed: UInt64
    package var steps = 0
    package var simulatedMilliseconds: Int64 = 0
    package var events = 0
    package var pairs = 0
    package var crashes = 0
    /// Transactions that the store refused.
    package var failedCommits = 0
    /// Attempts that a gateway wanted to be repeated.
    package var retries = 0
    /// Publishes to a session that was over.
    package var refused = 0
    /// Changes by kind.
    package var changes: [String: Int] = [:]
    package var seenOnSocket = 0
    package var pushed = 0
    /// Neither surface, and none of the reasons below: has to be 0.
    package var lost = 0
    /// Both surfaces, by reason.
    package var duplicates: [String: Int] = [:]
    /// Both surfaces without a reason: has to be 0.
    package var unexplained = 0
    /// Neither surface, by reason.
    package var excused: [String: Int] = [:]
    /// From the commit to the push of who was awaited and never seen on the socket, without a crash in between.
    package var rescues: [String: [Int64]] = [:]
    /// The first things that broke a rule, with time and names.
    package var violations: [String] = []
    package var violationCount = 0

    package var isClean: Bool { violationCount == 0 && lost == 0 && unexplained == 0 }
}

extension SimulationReport: CustomStringConvertible {
    package var description: String {
        func lines(_ counts: [String: Int]) -> String {
            counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { "\n  \($0.value)\t\($0.key)" }.joined()
        }
        func rescue(_ times: [Int64]) -> String {
            let sorted = times.sorted()
            let (median, high) = (sorted[sorted.count / 2], sorted[sorted.count * 99 / 100])
            return "\(sorted.count), p50 \(median) ms, p99 \(high) ms, at most \(sorted[sorted.count - 1]) ms"
        }
        let times = rescues.sorted { $0.key < $1.key }.map { "\n  \($0.key): \(rescue($0.value))" }.joined()
        return """
            steps           \(steps) in \(simulatedMilliseconds / 1000) simulated seconds, \(crashes) crashes
            pairs           \(pairs) of \(events) events
            seen on socket  \(seenOnSocket)
            pushed          \(pushed)
            lost            \(lost)
            unexplained     \(unexplained)
            failed commits  \(failedCommits), refused publishes \(refused), repeated pushes \(retries)
            changes         \(changes.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", "))
            violations      \(violationCount)\(violations.map { "\n  \($0)" }.joined())
            on both, by reason:\(lines(duplicates))
            on neither, by reason:\(lines(excused))
            from commit to push of those waited for in vain:\(times)
            """
    }
}
