package import HubCore
package import HubDelivery

/// Steps 1 to 5 of a round: which pushes go out now, and which end, wait or join the queue of their lane.
extension PushFlow {
    // MARK: 1, 2. Expired and ruled

    /// - Parameter channels: of the events asked about, in order; nil: there is no such event, or it cannot be read.
    package mutating func learned(channels: [String?], at now: Moment) -> Step? {
        precondition(channels.count == round.events.count, "\(channels.count) channels for \(round.events.count) events")
        let time = clock.time(at: now)
        for (event, channel) in zip(round.events, channels) { rules.learn(event: event, channel: channel, now: time) }
        return askZones(at: now)
    }

    mutating func askZones(at now: Moment) -> Step? {
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

    mutating func rule(_ due: [PushRecord], at now: Moment) -> Step? {
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
}

extension PushRecord {
    var deviceName: DeviceName { DeviceName(app: app, user: user, id: device) }
}
