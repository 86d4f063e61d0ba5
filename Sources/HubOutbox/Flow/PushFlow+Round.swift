package import HubCore
package import HubDelivery

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
/// Each method takes the answer to one question and asks the next. Rulings and ends are stored last.
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

    // MARK: 1, 2. Expired and ruled

    /// - Parameter channels: of the events asked about, in order; nil: there is no such event, or it cannot be read.
    package mutating func learned(channels: [String?], at now: Moment) -> Step? {
        precondition(channels.count == round.events.count, "\(channels.count) channels for \(round.events.count) events")
        let time = clock.time(at: now)
        for (event, channel) in zip(round.events, channels) { rules.learn(event: event, channel: channel, now: time) }
        return askZones(at: now)
    }

    private mutating func askZones(at now: Moment) -> Step? {
        let time = clock.time(at: now)
        var names: Set<DeviceName> = []
        round.unruled = round.unruled.filter { rules.needsZone(of: $0, now: time) && names.insert($0.deviceName).inserted }
        return round.unruled.isEmpty ? takeLearned(at: now) : .readZones(round.unruled)
    }

    /// - Parameter zones: of the pushes' devices, in order; nil: the device names none, or cannot be read.
    package mutating func learned(zones: [String?], at now: Moment) -> Step? {
        precondition(zones.count == round.unruled.count, "\(zones.count) zones for \(round.unruled.count) pushes")
        let time = clock.time(at: now)
        for (push, timezone) in zip(round.unruled, zones) {
            if !rules.learn(device: push, timezone: timezone, now: time), let timezone { noteUnknown(timezone, of: push) }
        }
        return takeLearned(at: now)
    }

    private mutating func takeLearned(at now: Moment) -> Step? {
        round.unruled = []
        let time = clock.time(at: now)
        var known: [PushRecord] = []
        for push in queue.takeDue(now: time, limit: round.dueLimit) {
            // A push that has come meanwhile may be unknown: it is for the next round.
            if rules.needsEvent(of: push) || rules.needsZone(of: push, now: time) { queue.insert(push) } else { known.append(push) }
        }
        return rule(known, at: now)
    }

    private mutating func rule(_ due: [PushRecord], at now: Moment) -> Step? {
        let time = clock.time(at: now)
        var living = due
        if due.contains(where: { $0.isExpired(now: time) }) {
            round.ended = due.filter { $0.isExpired(now: time) }.map { ended($0, .expired, outcome: "expired", time: time) }
            living = due.filter { !$0.isExpired(now: time) }
        }
        let outcome = rules.rule(living, now: time)
        // In the queue before anything is asked, so that a cancelled push is found there.
        for push in outcome.waiting { queue.insert(push) }
        round.isAnyDue = !living.isEmpty
        round.waiting = outcome.waiting
        round.ended += outcome.ended
        displace(outcome.displaced)
        round.pushes = outcome.sending
        round.limit = max(1, round.limit - living.count)
        if queue.parkedCount == 0 { return asked(rooms: [], at: now) }
        // Unproven tokens take the room that proven ones leave.
        round.routes = queue.routes.filter { lanes.isAskable($0, now: time) }.sorted { !$0.isUnproven && $1.isUnproven }
        return round.routes.isEmpty ? asked(rooms: [], at: now) : .askRooms(round.routes)
    }

    /// Ends waiting pushes whose place a newer one takes.
    private mutating func displace(_ names: [PushRules.Displaced]) {
        for name in names {
            for var push in queue.remove(nid: name.nid, device: name.device) {
                guard rules.covers(name, push) else {
                    queue.insert(push)
                    continue
                }
                push.state = .cancelled
                push.outcome = PushBudget.Reason.displaced.rawValue
                round.ended.append(push)
            }
        }
    }

    // MARK: 3. Parked

    /// - Parameter rooms: of the lanes asked about, in order.
    package mutating func asked(rooms: [PushRoom], at now: Moment) -> Step? {
        precondition(rooms.count == round.routes.count, "\(rooms.count) rooms for \(round.routes.count) lanes")
        let time = clock.time(at: now)
        var waiters: [PushRecord] = []
        for (route, room) in zip(round.routes, rooms) where waiters.count < round.limit {
            let free = round.limit - waiters.count
            let taken = queue.takeParked(on: route, count: min(room.count, free), urgent: min(room.urgent, free))
            waiters += taken
            if queue.hasParked(on: route) { lanes.wait(on: route, again: room.again, now: time) } else { lanes.end(on: route) }
            if taken.isEmpty { lanes.refuse(route) }
        }
        if !round.isAnyDue, waiters.isEmpty, round.ended.isEmpty {
            if hasReloaded || !isReloadDue(at: now) { return nil }
            hasReloaded = true
            return reload(at: now)
        }
        hasReloaded = false
        round.waiterCount = waiters.count
        if !waiters.isEmpty { round.pushes = waiters + round.pushes }
        return round.pushes.isEmpty ? .pause : .askWaits(round.pushes)
    }

    // MARK: 4, 5. Departing and crowded

    /// - Parameter waits: by place among the pushes asked about, in milliseconds; no entry: it goes.
    package mutating func asked(waits: [Int: Int64], at now: Moment) -> Step? {
        // Mostly all go.
        if !waits.isEmpty || queue.parkedCount > 0 { keepBack(waits, time: clock.time(at: now)) }
        if round.pushes.isEmpty { return .pause }
        let devices = round.pushes.compactMap { $0.address == nil ? $0.deviceName : nil }
        return devices.isEmpty ? lookedUp([], at: now) : .lookUp(devices)
    }

    private mutating func keepBack(_ waits: [Int: Int64], time: Int64) {
        var going: [PushRecord] = []
        going.reserveCapacity(round.pushes.count)
        var waiterCount = 0
        var last: Crowd?
        for (place, var push) in round.pushes.enumerated() {
            if let wait = waits[place] {
                push.dueAt = time + wait
                queue.insert(push)
            } else if place < round.waiterCount {
                waiterCount += 1
                going.append(push)
            } else if let route = crowdedRoute(of: push, &last, time: time) {
                queue.park(push, on: route)
            } else {
                going.append(push)
            }
        }
        (round.pushes, round.waiterCount) = (going, waiterCount)
    }

    /// Whether others wait for a lane.
    private typealias Crowd = (route: PushRoute, isUrgent: Bool, isCrowded: Bool)

    /// After this time a push may take another way than at its decision, in milliseconds.
    private static let routeAge: Int64 = 60_000

    /// The lane that a push has to wait for, because others wait there already: urgent ones behind urgent ones. Its device is looked up
    /// when its turn comes, so not now.
    /// - Parameter last: of the push before, which mostly takes the same lane.
    private func crowdedRoute(of push: PushRecord, _ last: inout Crowd?, time: Int64) -> PushRoute? {
        guard let route = push.route, let timing = push.timing, time - timing.committedAt < Self.routeAge else { return nil }
        if last?.isUrgent != timing.isUrgent || last?.route != route {
            last = (route, timing.isUrgent, timing.isUrgent ? queue.hasUrgentParked(on: route) : queue.hasParked(on: route))
        }
        return last?.isCrowded == true ? route : nil
    }

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
                push.dueAt = time + max(1, wait.milliseconds + 1)
                queue.insert(push)
            }
        }
        return lease(at: now)
    }

    // MARK: 9. Leased

    private mutating func lease(at now: Moment) -> Step {
        (round.pushes, round.found, round.asked, round.candidates) = ([], [], [], [])
        if round.ready.isEmpty { return .pause }
        let time = clock.time(at: now)
        inFlight += round.ready.count
        return .lease(
            round.ready.map { addressed in
                var push = addressed.push
                push.state = .leased
                push.attempts += 1
                push.dueAt = time + Self.leaseMilliseconds
                return push
            })
    }

    /// Nothing goes out in this round.
    package mutating func paused(at now: Moment) -> Step? { write(at: now) }

    /// - Parameter leased: the pushes that had not ended meanwhile, in order; nil: the store failed.
    package mutating func leased(_ leased: [PushRecord]?, at now: Moment) -> Step? {
        let ready = round.ready
        round.ready = []
        guard let leased else {
            round.hasStoreFailed = true
            inFlight -= ready.count
            for addressed in ready { wait(with: addressed.push, at: now) }
            return write(at: now)
        }
        inFlight -= ready.count - leased.count
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
        inFlight -= round.unsent.count
        return .complete(round.unsent)
    }

    /// - Parameter withdrawn: pushes that have ended instead of being tried again; nil: the store failed.
    package mutating func completed(_ withdrawn: [PushRecord]?, at now: Moment) -> Step? {
        finish(round.unsent, withdrawn: withdrawn ?? [], shift: round.clockShift)
        return write(at: now)
    }

    // MARK: Stored

    private mutating func write(at now: Moment) -> Step? {
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

extension PushRecord {
    var deviceName: DeviceName { DeviceName(app: app, user: user, id: device) }
}
