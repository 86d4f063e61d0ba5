internal import CLoadSockets

/// Counts of the connections that came and went on one worker.
struct ArrivalCounts: Sendable {
    /// Connections that fell due and were begun.
    var begun: UInt64 = 0
    /// Connections that completed the opening.
    var opened: UInt64 = 0
    /// Failed attempts; each is retried.
    var failed: UInt64 = 0

    mutating func add(_ other: ArrivalCounts) {
        begun += other.begun
        opened += other.opened
        failed += other.failed
    }
}

/// Connections that arrive at a constant rate, stay for a while, and leave. Used on their worker's thread.
final class Arrivals: LinkWatcher {
    private let worker: Worker
    private let makePlan: (UInt64) -> ConnectionPlan
    private let stay: UInt64
    private var leaving: [(at: UInt64, slot: Int, generation: UInt32)] = []
    private var firstLeaving = 0
    private var isComing = true
    private(set) var counts = ArrivalCounts()

    private static let retryPause: UInt64 = 1_000_000_000
    private static let leaveCheck: UInt64 = 5_000_000

    /// - Parameters:
    ///   - schedule: the arrivals; nil: only by calls of `come`.
    ///   - stay: nanoseconds; `.max`: for ever.
    init(worker: Worker, schedule: OpenLoop?, stay: UInt64, plan: @escaping (UInt64) -> ConnectionPlan) {
        self.worker = worker
        self.stay = stay
        makePlan = plan
        if let schedule {
            worker.add(
                Pace(schedule) { [weak self] due in
                    guard let self, self.isComing else { return false }
                    self.come(due: due)
                    return true
                })
        }
        if stay < .max {
            worker.add(Pace(due: tandem_load_now()) { [weak self] now in self?.leave(now: now) })
        }
    }

    /// Ends the arrivals. Present connections stay or leave as before.
    func stopComing() { isComing = false }

    /// Opens a connection with this due time, whatever the present time.
    func come(due: UInt64) {
        let plan = makePlan(counts.begun)
        counts.begun += 1
        plan.due = due
        plan.watcher = self
        worker.open(plan)
    }

    func opened(_ slot: Int, now: UInt64) {
        counts.opened += 1
        if stay < .max { leaving.append((now + stay, slot, worker.links[slot].generation)) }
    }

    func closed(_ slot: Int, plan: ConnectionPlan, wasOpen: Bool, code: Int?, now: UInt64) {
        guard !wasOpen else { return }
        counts.failed += 1
        guard isComing else { return }
        // Keeps the original due time: the delay is the server's.
        let due = plan.due ?? now
        let again = makePlan(UInt64(plan.number))
        again.due = due
        again.watcher = self
        worker.add(
            Pace(due: now + Self.retryPause) { [weak worker] _ in
                worker?.open(again)
                return nil
            })
    }

    private func leave(now: UInt64) -> UInt64? {
        while firstLeaving < leaving.count, leaving[firstLeaving].at <= now {
            let (_, slot, generation) = leaving[firstLeaving]
            firstLeaving += 1
            if worker.links[slot].generation == generation { worker.hangUp(slot, saysGoodbye: true) }
        }
        if firstLeaving > 1024, firstLeaving * 2 > leaving.count {
            leaving.removeFirst(firstLeaving)
            firstLeaving = 0
        }
        return now + Self.leaveCheck
    }
}
