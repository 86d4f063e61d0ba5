package import HubCore
package import HubDelivery

/// A settlement: a batch of answers of the gateways, until the store has what they mean.
extension PushFlow {
    /// The state of a settlement between its steps.
    struct Settlement: Sendable {
        var answers: [Answer] = []
        /// The pushes after their answers, not stored yet.
        var settled: [PushRecord] = []
        /// Places of pushes whose token is dead, and that may follow their recipient.
        var dead: [Int] = []
        /// `OutboxClock.shift` when the pushes were settled.
        var clockShift: Int64 = 0
    }

    /// Takes answers of the gateways. Not before the last settlement has ended.
    package mutating func answered(_ answers: [Answer], at now: Moment) -> Settling? {
        // Lanes have room again: the next pushes go out while the answers are stored.
        unanswered -= answers.count
        lanes.askAgain()
        let time = clock.time(at: now)
        settlement = Settlement(answers: answers, clockShift: clock.shift)
        settlement.settled.reserveCapacity(answers.count)
        for answer in answers { settlement.settled.append(settle(answer, time: time)) }
        let notes = answers.compactMap(Self.note)
        return notes.isEmpty ? noted(at: now) : .note(notes)
    }

    /// The push after its answer.
    private mutating func settle(_ answer: Answer, time: Int64) -> PushRecord {
        let push = answer.attempt.push.shifted(by: clock.shift - answer.attempt.clockShift)
        // Libcurl may have sent it once and got no answer. Such an attempt counts by its outcome.
        if let wait = answer.keptBack, case .retry = answer.outcome { return keptBack(push, until: time + wait) }
        counts.answered(push, answer, time: time)
        switch answer.outcome {
        case .accepted(let providerID, _):
            var push = push
            push.providerID = providerID
            return ended(push, .accepted, outcome: "accepted", time: time)
        case .dead(let reason, _, _), .rejected(let reason): return ended(push, .failed, outcome: reason, time: time)
        case .skippedUnconfigured: return ended(push, .skippedUnconfigured, outcome: "skipped_unconfigured", time: time)
        case .retry(_, let reason): return afterRetry(push, answer.outcome, reason: reason, time: time)
        }
    }

    /// The trail's word for a push that waits for the receipt of somebody who has just come back.
    static let cameBack = "came back"

    /// A push that was handed over and did not leave: no attempt was made.
    private func keptBack(_ push: PushRecord, until due: Int64) -> PushRecord {
        var push = push
        push.state = .retry
        push.outcome = Self.cameBack
        push.dueAt = due
        push.attempts -= 1
        push.attempt = nil
        if push.attempts == 0 { push.firstAttemptAt = nil }
        return push
    }

    /// The answer's fact about the token; nil: nothing has to be stored.
    private static func note(_ answer: Answer) -> TokenNote? {
        let (app, target) = (answer.attempt.push.app, answer.attempt.target)
        switch answer.outcome {
        case .dead(_, let since, isCertain: true): return .dead(token: target.token, app: app, target.provider, since: since)
        case .accepted(_, let other) where answer.attempt.isNoteDue || other != nil:
            return .accepted(token: target.token, app: app, target.provider, other ?? target.environment)
        default: return nil
        }
    }

    /// The store has what the answers say about tokens, or has failed.
    package mutating func noted(at now: Moment) -> Settling? {
        settlement.dead = settlement.answers.indices.filter { index in
            guard case .dead = settlement.answers[index].outcome else { return false }
            return settlement.settled[index].address == nil && settlement.settled[index].purpose == .notification
        }
        settlement.answers = []
        if settlement.dead.isEmpty { return update() }
        return .readDevices(of: Self.users(of: settlement.dead.map { settlement.settled[$0] }))
    }

    /// - Parameter devices: of the users asked about, by app and user, newest registration first; nil: they cannot be read.
    package mutating func reread(devices: [String: [String: [Device]]]?, at now: Moment) -> Settling? {
        guard let devices else { return update() }
        let time = clock.time(at: now)
        var redirections: [Redirection] = []
        settlement.dead = settlement.dead.filter { place in
            let push = settlement.settled[place]
            let reachable = targets.reachable(for: push, devices, now: time)
            guard reachable.contains(where: \.isNew) else { return false }
            redirections.append(Redirection(delivery: push, token: nil, reachable: reachable))
            return true
        }
        return redirections.isEmpty ? update() : .redirect(redirections, now: time)
    }

    /// - Parameter outcomes: of the pushes asked about, in order; nil: the store failed.
    package mutating func followed(_ outcomes: [RedirectionOutcome]?, at now: Moment) -> Settling? {
        guard let outcomes else { return update() }
        var stored: Set<Int> = []
        for (place, outcome) in zip(settlement.dead, outcomes) {
            guard case .ended(let ended, let successors) = outcome else { continue }
            stored.insert(place)
            land([ended])
            noteEnd(ended)
            take(successors)
        }
        lanes.askAgain()
        settlement.settled = settlement.settled.indices.filter { !stored.contains($0) }.map { settlement.settled[$0] }
        return update()
    }

    private func update() -> Settling? { settlement.settled.isEmpty ? nil : .update(settlement.settled) }

    /// - Parameter withdrawn: pushes that have ended instead of being tried again; nil: the store failed, and has them as leased.
    package mutating func settled(_ withdrawn: [PushRecord]?, at now: Moment) {
        land(settlement.settled)
        finish(settlement.settled, withdrawn: withdrawn ?? [], shift: settlement.clockShift)
        settlement = Settlement()
    }
}
