package import HubCore
internal import HubDelivery

/// A round: due pushes on their way to the gateways, as many as fit in one lease. "May it go out?" in this order:
///
/// 1. Expired: a push past its life ends, and nothing is asked about it.
/// 2. Ruled: quiet hours, alert limits and the silent budget let it go, make it wait, or end it (`PushRules`).
/// 3. Parked: pushes that wait for a lane join the round if the lane has room now.
/// 4. Departing: a push waits if its recipient has just come back, or has read the event (`Comebacks`).
/// 5. Crowded: a push joins the queue of its lane if others wait there.
/// 6. Looked up: the device and its token as they are now (`TargetRules`).
/// 7. Followed: if the device is another than at the decision, the push follows its recipient (`Redirection`).
/// 8. Admitted: the lane gives it a place, or parks it.
/// 9. Leased: the store has the lease, durable, before the first byte leaves.
/// 10. Handed: the gateway has it.
///
/// Each method takes the answer to one question and asks the next. Rulings and ends are stored last. `PushFlow+Ruling.swift` has the
/// questions 1 to 5, `PushFlow+Sending.swift` has 6 to 10.
extension PushFlow {
    /// The state of a round between its steps.
    struct Round: Sendable {
        /// Pushes that the round takes at most, and due ones among them.
        var limit = 0
        var dueLimit = 0
        var isAnyDue = false
        /// Asked about before the rules can be applied.
        var events: [String] = []
        var unruled: [PushRecord] = []
        /// Ruled to wait; in the queue.
        var waiting: [PushRecord] = []
        /// Ended without a lease.
        var ended: [PushRecord] = []
        var routes: [PushRoute] = []
        /// On their way. The first `waiterCount` have waited for their lane.
        var pushes: [PushRecord] = []
        var waiterCount = 0
        /// The targets, place by place.
        var found: [TargetRules.Found] = []
        /// Places of pushes whose device may be another than at the decision.
        var changed: [Int] = []
        /// Places of pushes that are asked about.
        var asked: [Int] = []
        /// Places of pushes that do not go out in this round.
        var gone: Set<Int> = []
        /// Candidates for the lanes, for `asked`.
        var candidates: [PushCandidate] = []
        var ready: [Addressed] = []
        /// Leased, and ended or to be tried again without a handover; settled at this `OutboxClock.shift`.
        var unsent: [PushRecord] = []
        var clockShift: Int64 = 0
        var hasStoreFailed = false
    }

    struct Addressed: Sendable {
        let push: PushRecord
        let found: TargetRules.Found
    }

    /// Works off what is due, round after round. Not while that goes on.
    /// - Returns: nil when nothing can go out; `wake` says when to start again.
    package mutating func start(at now: Moment) -> Step? {
        lanes.askAgain()
        hasReloaded = false
        return nextRound(at: now)
    }

    mutating func nextRound(at now: Moment) -> Step? {
        round = Round()
        if isClosed || inFlight >= Self.inFlightMax { return nil }
        followClock(at: now)
        round.limit = min(Self.leaseMax, Self.inFlightMax - inFlight)
        round.dueLimit = queue.parkedCount == 0 ? round.limit : max(1, round.limit / 2)
        let time = clock.time(at: now)
        let due = queue.takeDue(now: time, limit: round.dueLimit)
        if !rules.isAnyUnknown(due, now: time) { return rule(due, at: now) }
        // Back in the queue for the time of the questions, so that a cancelled push is found there.
        for push in due { queue.insert(push) }
        round.unruled = due
        round.events = Array(Set(due.filter { rules.needsEvent(of: $0) }.map(\.event)))
        return round.events.isEmpty ? askZones(at: now) : .readChannels(round.events)
    }

    // MARK: Stored

    /// Nothing goes out in this round.
    package mutating func paused(at now: Moment) -> Step? { write(at: now) }

    mutating func write(at now: Moment) -> Step? {
        let rows = round.waiting.filter { queue.contains($0) } + round.ended
        return rows.isEmpty ? written(true, at: now) : .write(rows)
    }

    /// - Parameter isWritten: false: the store failed, and the pushes are ruled on again after the next start.
    package mutating func written(_ isWritten: Bool, at now: Moment) -> Step? {
        for push in round.ended { noteEnd(push) }
        if isWritten, !round.hasStoreFailed { return nextRound(at: now) }
        round = Round()
        return nil
    }
}
