package import HubCore
package import HubDelivery

/// Steps 6 to 10 of a round: each push's device, its place on a lane, its lease and its handover.
extension PushFlow {
    // MARK: 6. Looked up

    /// Tokens are read now and not at the decision, because they may have changed since.
    /// - Parameters:
    ///   - devices: those asked about, in order; nil: there is no such device.
    ///   - unread: places of devices that cannot be read.
    package mutating func lookedUp(_ devices: [DeviceTarget?], unread: Set<Int> = [], at now: Moment) -> Step? {
        let time = clock.time(at: now)
        var next = 0
        round.found.reserveCapacity(round.pushes.count)
        for (place, push) in round.pushes.enumerated() {
            if let address = push.address {
                round.found.append(TargetRules.target(of: push, at: address))
            } else {
                defer { next += 1 }
                if unread.contains(next) {
                    round.found.append(.unknown)
                } else {
                    let (found, isChanged) = TargetRules.target(of: push, on: devices[next], now: time)
                    round.found.append(found)
                    if isChanged { round.changed.append(place) }
                }
            }
        }
        precondition(next == devices.count, "\(devices.count) devices for \(next) pushes")
        return round.changed.isEmpty ? askLanes(at: now) : .readDevices(of: Self.users(of: round.changed.map { round.pushes[$0] }))
    }

    // MARK: 7. Followed

    /// The users of pushes, by app.
    static func users(of pushes: some Sequence<PushRecord>) -> [String: [String]] {
        var users: [String: Set<String>] = [:]
        for push in pushes { users[push.app, default: []].insert(push.user) }
        return users.mapValues { Array($0) }
    }

    /// - Parameter devices: of the users asked about, by app and user, newest registration first; nil: they cannot be read.
    package mutating func read(devices: [String: [String: [Device]]]?, at now: Moment) -> Step? {
        guard let devices else { return redirected(nil, at: now) }
        let time = clock.time(at: now)
        var redirections: [Redirection] = []
        for place in round.changed {
            let push = round.pushes[place]
            let redirection = redirection(of: push, round.found[place], targets.reachable(for: push, devices, now: time), time: time)
            // Mostly no device has come, and nothing has to be stored.
            guard redirection.isWorthAsking else { continue }
            redirections.append(redirection)
            round.asked.append(place)
        }
        return redirections.isEmpty ? askLanes(at: now) : .redirect(redirections, now: time)
    }

    private func redirection(
        of push: PushRecord, _ found: TargetRules.Found, _ reachable: [Redirection.Reachable], time: Int64
    ) -> Redirection {
        switch found {
        case .target(let target, _): Redirection(delivery: push, token: TokenMark(target.token, of: target.provider), reachable: reachable)
        case .none(let reason):
            Redirection(delivery: ended(push, .undeliverable, outcome: reason, time: time), token: nil, reachable: reachable)
        case .unknown: Redirection(delivery: push, token: nil, reachable: [])
        }
    }

    /// - Parameter outcomes: of the pushes asked about, in order; nil: the store failed.
    package mutating func redirected(_ outcomes: [RedirectionOutcome]?, at now: Moment) -> Step? {
        if let outcomes {
            for (place, outcome) in zip(round.asked, outcomes) where !follow(outcome, round.pushes[place], at: now) {
                round.gone.insert(place)
            }
        } else {
            for place in round.changed { wait(with: round.pushes[place], at: now) }
            round.gone = Set(round.changed)
        }
        return askLanes(at: now)
    }

    /// - Returns: whether the push goes on.
    private mutating func follow(_ outcome: RedirectionOutcome, _ push: PushRecord, at now: Moment) -> Bool {
        switch outcome {
        case .goesOn(let successors):
            take(successors)
            return true
        case .ended(let ended, let successors):
            noteEnd(ended)
            take(successors)
        case .waits: wait(with: push, at: now)
        case .gone: break
        }
        return false
    }

    // MARK: 8. Admitted

    private mutating func askLanes(at now: Moment) -> Step? {
        if isClosed { return .pause }
        var urgent: [Int] = []
        var others: [Int] = []
        for (place, found) in round.found.enumerated() where !round.gone.contains(place) {
            let push = round.pushes[place]
            guard case .target(let target, _) = found else {
                round.ready.append(Addressed(push: push, found: found))
                continue
            }
            if push.isUrgent {
                urgent.append(place)
            } else if place >= round.waiterCount, queue.hasParked(on: target.route) {
                // A push that has waited goes first; urgent ones pass.
                queue.park(push, on: target.route)
            } else {
                others.append(place)
            }
        }
        round.asked = urgent + others
        round.candidates = round.asked.enumerated().compactMap { index, place in
            guard case .target(let target, _) = round.found[place] else { return nil }
            return PushCandidate(target: target, isUrgent: index < urgent.count)
        }
        return round.asked.isEmpty ? lease(at: now) : .admit(round.candidates)
    }

    /// - Parameter admissions: of the candidates, in order.
    package mutating func admitted(_ admissions: [PushAdmission], at now: Moment) -> Step? {
        precondition(admissions.count == round.asked.count, "\(admissions.count) admissions for \(round.asked.count) candidates")
        let time = clock.time(at: now)
        round.ready.reserveCapacity(round.ready.count + round.asked.count)
        for (index, admission) in admissions.enumerated() {
            let place = round.asked[index]
            switch admission {
            case .go: round.ready.append(Addressed(push: round.pushes[place], found: round.found[place]))
            case .wait(let again):
                let route = round.candidates[index].target.route
                queue.park(round.pushes[place], on: route)
                lanes.wait(on: route, again: again, now: time)
                lanes.refuse(route)
            case .deviceWait(let wait):
                var push = round.pushes[place]
                // A push ends with its life, not when its turn would have come.
                push.dueAt = max(time + 1, min(time + wait.milliseconds + 1, push.timing?.expiresAt ?? .max))
                queue.insert(push)
            }
        }
        return lease(at: now)
    }

    // MARK: 9. Leased

    private mutating func lease(at now: Moment) -> Step {
        (round.pushes, round.found, round.asked, round.candidates) = ([], [], [], [])
        // A node may have told of a push while an earlier round asked about it. Then it came into the queue once more.
        round.ready.removeAll { !sending.insert(PushName($0.push)).inserted }
        if round.ready.isEmpty { return .pause }
        let time = clock.time(at: now)
        return .lease(
            round.ready.map { addressed in
                var push = addressed.push
                push.state = .leased
                push.attempts += 1
                push.dueAt = time + Self.leaseMilliseconds
                return push
            })
    }

    /// - Parameter leased: the pushes that had not ended meanwhile, in order; nil: the store failed.
    package mutating func leased(_ leased: [PushRecord]?, at now: Moment) -> Step? {
        let ready = round.ready
        round.ready = []
        guard let leased else {
            round.hasStoreFailed = true
            land(ready.lazy.map(\.push))
            for addressed in ready { wait(with: addressed.push, at: now) }
            return write(at: now)
        }
        if leased.count < ready.count {
            let names = Set(leased.map(PushName.init))
            land(ready.lazy.map(\.push).filter { !names.contains(PushName($0)) })
        }
        let handovers = handovers(leased, ready, time: clock.time(at: now))
        round.clockShift = clock.shift
        unanswered += handovers.count
        return handovers.isEmpty ? handedOver(at: now) : .hand(handovers)
    }

    // MARK: 10. Handed

    private mutating func handovers(_ leased: [PushRecord], _ ready: [Addressed], time: Int64) -> [Handover] {
        var handovers: [Handover] = []
        handovers.reserveCapacity(leased.count)
        var rest = ready[...]
        for push in leased {
            rest = rest.drop { $0.push.nid != push.nid || $0.push.device != push.device }
            guard let addressed = rest.popFirst() else { break }
            guard let message = push.message else {
                round.unsent.append(ended(push, .failed, outcome: "no message", time: time))
                continue
            }
            guard message.expiresAt > time else {
                round.unsent.append(ended(push, .expired, outcome: "expired", time: time))
                continue
            }
            switch addressed.found {
            case .target(let target, let lastAcceptedAt):
                let isNoteDue = lastAcceptedAt.map { time - $0 >= Self.acceptanceNotedEvery } ?? false
                handovers.append(handover(of: push, message, to: target, isNoteDue: isNoteDue, time: time))
            case .none(let reason): round.unsent.append(ended(push, .undeliverable, outcome: reason, time: time))
            case .unknown:
                round.unsent.append(afterRetry(push, .retry(after: nil, reason: "store"), reason: "store", time: time))
            }
        }
        return handovers
    }

    private func handover(
        of push: PushRecord, _ message: PushMessage, to target: PushTarget, isNoteDue: Bool, time: Int64
    ) -> Handover {
        var push = push
        if push.attempts == 1 || push.firstAttemptAt == nil { push.firstAttemptAt = time }
        push.attempt = DeliveryAttempt(
            number: push.attempts, startedAt: time, endedAt: 0, answer: "", token: TokenMark(target.token, of: target.provider))
        return Handover(
            message: message, attempt: Attempt(push: push, target: target, isNoteDue: isNoteDue, clockShift: clock.shift))
    }

    /// The gateways have the pushes.
    package mutating func handedOver(at now: Moment) -> Step? {
        if round.unsent.isEmpty { return write(at: now) }
        return .complete(round.unsent)
    }

    /// - Parameter withdrawn: pushes that have ended instead of being tried again; nil: the store failed.
    package mutating func completed(_ withdrawn: [PushRecord]?, at now: Moment) -> Step? {
        land(round.unsent)
        finish(round.unsent, withdrawn: withdrawn ?? [], shift: round.clockShift)
        return write(at: now)
    }
}
