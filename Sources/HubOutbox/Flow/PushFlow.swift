package import HubCore
package import HubDefinitions
package import HubDelivery

/// The outbox's decisions as a value: which pushes go out, when and where to, and what each answer of a gateway means.
///
/// Two chains of steps run side by side. A round takes due pushes to their gateways: `start` gives its first `Step`. A settlement stores
/// what gateways have answered: `answered` gives its first `Settling`. The owner carries a step out and gives the answer to the method
/// that the step names, which returns the next step. Inputs may come between any two steps.
///
/// No I/O, no clock, no lock; one owner. Times of pushes are milliseconds since 1970.
package struct PushFlow: ~Copyable, Sendable {
    var queue = OutboxQueue()
    var rules: PushRules
    let targets: TargetRules
    var lanes = LaneWaits()
    var clock: OutboxClock
    /// Evenly distributed in `0 ..< 1`.
    let random: @Sendable () -> Double
    var round = Round()
    var settlement = Settlement()
    var counts = OutboxCounts()
    /// Leased or about to be, and not stored as settled.
    var sending: Set<PushName> = []
    package var inFlight: Int { sending.count }
    /// Pushes in flight that gateways have not answered.
    package internal(set) var unanswered = 0
    package private(set) var isClosed = false
    /// The store holds open pushes that are not in the queue.
    var hasOverflowed = false
    /// The store was read, and nothing could go out since.
    var hasReloaded = false
    private var reloadedAt: Int64 = 0
    private var notes: [Note] = []

    /// Pushes kept in memory; others wait in the store.
    package static let queuedMax = 100_000
    /// Pushes handed to the gateways and not answered.
    package static let inFlightMax = 4_000
    /// Pushes leased in one transaction.
    package static let leaseMax = 1_024
    /// Length of a lease: the time that an attempt may take before it may be repeated, in milliseconds.
    package static let leaseMilliseconds: Int64 = 30_000
    /// The store is read again after this time while pushes wait for lanes, in milliseconds.
    static let reloadSpacing: Int64 = 10_000
    /// Acceptance of a token is stored again after this time: often enough to tell living tokens from dead ones. In milliseconds.
    static let acceptanceNotedEvery: Int64 = 24 * 3600 * 1000
    /// A push is tried again after this time if the store fails, in milliseconds.
    private static let storeWait: Int64 = 1_000

    /// - Parameter random: evenly distributed in `0 ..< 1`; spreads retries of pushes that failed together.
    package init(
        definitions: DefinitionSet, tokenAge: TokenAge = .standard, at now: Moment,
        random: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) }
    ) {
        rules = PushRules(definitions: definitions)
        targets = TargetRules(tokenAge: tokenAge)
        clock = OutboxClock(at: now)
        self.random = random
    }

    // MARK: Inputs

    /// Takes up pushes that an earlier process, or the former owner of their people, left open: nothing that it leased is being sent any
    /// more. This process knows better about pushes that it sends or has in its queue: these stay as they are.
    /// - Parameters:
    ///   - open: `queuedMax` of the store's at most, the soonest due first.
    ///   - isWhole: false: the store may hold more.
    package mutating func resume(_ open: [PushRecord], isWhole: Bool, at now: Moment) {
        // Pushes that came to a full queue since the read began may be missing in it.
        if !isWhole { hasOverflowed = true }
        let time = clock.time(at: now)
        add(
            open.compactMap { push in
                if queue.contains(push) { return nil }
                var push = push
                if push.state == .leased { push.dueAt = time }
                return push
            }, at: now)
        lanes.askAgain()
    }

    /// Rules by other definitions from now on.
    package mutating func change(to definitions: DefinitionSet) {
        rules.definitions = definitions
    }

    /// Takes pushes that the store holds in the state `due`.
    package mutating func enqueue(_ pushes: [PushRecord], at now: Moment) {
        if hasOverflowed || queue.count + pushes.count > Self.queuedMax {
            hasOverflowed = true
        } else {
            queue.reserve(pushes.count)
            // A node that tells of a push may have read it before it was leased.
            for push in pushes where !sending.contains(PushName(push)) { queue.insert(clock.inTime(push, at: now)) }
        }
        lanes.askAgain()
    }

    /// Forgets pushes that have ended in the store.
    package mutating func drop(_ pushes: [PushRecord]) {
        for push in pushes {
            _ = queue.remove(nid: push.nid, device: push.device)
            noteEnd(push)
        }
    }

    /// Gives up the pushes that wait and are another process's from now on.
    package mutating func keep(_ isKept: (PushRecord) -> Bool) {
        for push in queue.all where !isKept(push) { _ = queue.remove(nid: push.nid, device: push.device) }
    }

    /// Sends nothing more; open pushes stay open in the store. Answers are still settled.
    package mutating func close() {
        isClosed = true
        queue.removeAll()
    }

    // MARK: Outputs

    /// The pushes in the queue and under way. Costs as much as they are many.
    var known: Set<PushName> {
        var known = sending
        for push in queue.all { known.insert(PushName(push)) }
        return known
    }

    /// The next time to call `start`, and the milliseconds until then: 0 or less if it has come. Nil: an input or an answer comes first.
    package mutating func wake(at now: Moment) -> (due: Int64, wait: Int64)? {
        // A push that waits for a free place starts when an answer frees one.
        if isClosed || inFlight >= Self.inFlightMax { return nil }
        return [queue.nextDue(), lanes.soonest(of: queue.routes)].compactMap { $0 }.min().map { ($0, $0 - clock.time(at: now)) }
    }

    /// The facts since the last call.
    package mutating func takeNotes() -> [Note] {
        if notes.isEmpty { return [] }
        defer { notes = [] }
        return notes
    }

    /// Costs as much as what waits: counting costs nothing while pushes are sent.
    package func counters(at now: Moment) -> OutboxCounters {
        var counters = OutboxCounters(counts: counts, queued: queue.count, inFlight: inFlight, hasOverflowed: hasOverflowed)
        for (route, count) in queue.parkedCounts() {
            let lane = OutboxCounters.Lane(provider: route.provider, environment: route.provider == .apns ? route.environment : nil)
            counters.parked[lane, default: 0] += count
        }
        counters.oldestDueMilliseconds = queue.oldestDue.map { max(0, clock.time(at: now) - $0) } ?? 0
        return counters
    }

    // MARK: The clock

    /// Moves everything that waits when the wall clock was set. Between rounds only, when no push is outside the queue; pushes at the
    /// gateways are moved with their answers.
    mutating func followClock(at now: Moment) {
        guard let step = clock.follow(now) else { return }
        let shift = step.milliseconds
        queue.shift(by: shift)
        lanes.shift(by: shift)
        reloadedAt += shift
        // Limits are counted anew, as after a restart. The end of quiet hours is a time of day: it is asked for again.
        rules.forget()
        for var push in queue.unparked {
            let isQuiet = push.attempts == 0 && push.outcome == PushBudget.Reason.quietHours.rawValue
            if isQuiet { push.dueAt -= shift }
            rules.restore(push, now: step.to)
            if isQuiet {
                push.dueAt = step.to
                queue.insert(push)
            }
        }
        notes.append(.clockSet(step, waiting: queue.count))
    }

    // MARK: The store's other pushes

    /// Whether memory has room for pushes of the store. Pushes that wait for their lane are read again with them, so the spacing is then
    /// longer.
    func isReloadDue(at now: Moment) -> Bool {
        guard hasOverflowed, inFlight == 0, queue.parkedCount < Self.queuedMax / 2 else { return false }
        return queue.parkedCount == 0 || clock.time(at: now) >= reloadedAt + Self.reloadSpacing
    }

    /// Reads the soonest due pushes of the store in the place of those in memory.
    mutating func reload(at now: Moment) -> Step {
        reloadedAt = clock.time(at: now)
        queue.removeAll()
        // Pushes that are committed from now on may be missing in the answer.
        hasOverflowed = false
        return .reload(limit: Self.queuedMax)
    }

    /// - Parameter open: nil: the store failed.
    package mutating func reloaded(_ open: [PushRecord]?, at now: Moment) -> Step? {
        if isClosed { return nil }
        if open.map({ $0.count == Self.queuedMax }) ?? true { hasOverflowed = true }
        add(open ?? [], at: now)
        return nextRound(at: now)
    }

    /// Takes pushes of the store.
    private mutating func add(_ pushes: [PushRecord], at now: Moment) {
        let time = clock.time(at: now)
        for push in pushes where !sending.contains(PushName(push)) {
            guard queue.count < Self.queuedMax else {
                hasOverflowed = true
                return
            }
            let push = push.shifted(by: push.timing.map { clock.missedShift(of: $0.committedAt, time: time) } ?? 0)
            rules.restore(push, now: time)
            queue.insert(push)
        }
    }

    // MARK: Waits, ends and retries

    /// Keeps a push whose turn comes again after the store failed, or after another push of its recipient is answered.
    mutating func wait(with push: PushRecord, at now: Moment) {
        if isClosed { return }
        var push = push
        push.dueAt = clock.time(at: now) + Self.storeWait
        queue.insert(push)
    }

    /// Takes pushes to devices that have come since, which the store has committed.
    mutating func take(_ successors: [PushRecord]) {
        if isClosed { return }
        for successor in successors { queue.insert(successor) }
    }

    /// The push in its new state, with the outcome for the trail.
    /// - Parameter time: milliseconds since 1970.
    func ended(_ push: PushRecord, _ state: PushState, outcome: String, time: Int64) -> PushRecord {
        var push = push
        push.state = state
        push.outcome = outcome
        // Nil if no gateway was asked.
        push.attempt?.endedAt = time
        push.attempt?.answer = outcome
        return push
    }

    /// The push as it goes on after an attempt that may be repeated.
    /// - Parameter time: milliseconds since 1970.
    func afterRetry(_ push: PushRecord, _ outcome: PushOutcome, reason: String, time: Int64) -> PushRecord {
        let next = RetryPolicy.next(
            attempt: push.attempts, outcome: outcome, now: time, firstAttemptAt: push.firstAttemptAt ?? time,
            expiresAt: push.timing?.expiresAt ?? time, random: random())
        switch next {
        case .giveUp(let why): return ended(push, .failed, outcome: "\(reason): \(why)", time: time)
        case .at(let due):
            var push = ended(push, .retry, outcome: reason, time: time)
            push.dueAt = due
            return push
        }
    }

    /// Nothing of these pushes is under way any more.
    mutating func land(_ pushes: some Sequence<PushRecord>) {
        for push in pushes {
            let landed = sending.remove(PushName(push))
            assert(landed != nil, "\(push.nid) on \(push.device) lands without a start")
        }
    }

    /// Takes up the pushes that are tried again, once they are stored.
    /// - Parameters:
    ///   - withdrawn: pushes that have ended instead of being tried again.
    ///   - shift: `OutboxClock.shift` when the pushes were settled.
    mutating func finish(_ pushes: [PushRecord], withdrawn: [PushRecord], shift: Int64) {
        for push in withdrawn { noteEnd(push) }
        for var push in pushes {
            if push.state != .retry {
                noteEnd(push)
            } else if !isClosed, !withdrawn.contains(where: { $0.nid == push.nid && $0.device == push.device }) {
                // Stored; the next attempt is another one.
                push.attempt = nil
                queue.insert(push.shifted(by: clock.shift - shift))
            }
        }
        lanes.askAgain()
    }

    mutating func noteEnd(_ push: PushRecord) {
        counts.ended(push)
        notes.append(.ended(nid: push.nid, push.state, outcome: push.outcome))
    }

    mutating func noteUnknown(_ timezone: String, of push: PushRecord) {
        notes.append(.unknownZone(timezone, nid: push.nid))
    }
}
