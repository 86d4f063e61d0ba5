internal import HubCore
internal import HubDelivery

/// Lanes: who may go out now, and who waits in memory, with its row as it was, until its lane has room.
extension Outbox {
    /// A delivery with the answer to where it goes.
    struct Addressed {
        let delivery: PushRecord
        let found: TargetReader.Found
    }

    /// When a lane without room is asked again.
    struct LaneWait {
        /// Milliseconds since 1970.
        let until: Int64
        /// False: also whenever a push has ended.
        let isFirm: Bool
    }

    /// How long a lane that waits for the end of a push is left alone at most, in milliseconds: in case nobody tells of the end.
    private static let laneWaitMax: Int64 = 1_000

    private func wait(_ again: Duration?, now: Int64) -> LaneWait {
        // Rounded up: asked too early a lane has no room yet.
        again.map { LaneWait(until: now + max(1, $0.milliseconds + 1), isFirm: true) }
            ?? LaneWait(until: now + Self.laneWaitMax, isFirm: false)
    }

    /// When the first lane is to be asked again; nil while nothing waits for one.
    func nextRoom() -> Int64? { queue.routes.map { laneWaits[$0]?.until ?? 0 }.min() }

    /// Takes what waits for lanes that have room by now.
    func takeParked(limit: Int) -> [PushRecord] {
        if queue.parkedCount == 0 { return [] }
        let now = now
        var taken: [PushRecord] = []
        // Unproven tokens take the room that proven ones leave.
        for route in queue.routes.sorted(by: { !$0.isUnproven && $1.isUnproven }) where taken.count < limit && !refused.contains(route) {
            if let wait = laneWaits[route], wait.isFirm, wait.until > now { continue }
            let room = gateway.room(on: route)
            let free = limit - taken.count
            let found = queue.takeParked(on: route, count: min(room.count, free), urgent: min(room.urgent, free))
            taken += found
            laneWaits[route] = queue.hasParked(on: route) ? wait(room.again, now: now) : nil
            if found.isEmpty { refused.insert(route) }
        }
        return taken
    }

    /// Looks up where deliveries go and asks their lanes. Tokens are looked up now, not when the pushes were decided: they may have
    /// changed since.
    /// - Parameters:
    ///   - waiters: have waited for their lane and are asked about before others that have not.
    /// - Returns: what can be leased now. The others are in the queue again.
    func admit(_ waiters: [PushRecord], _ others: [PushRecord]) async -> [Addressed] {
        let waiters = departing(waiters)
        let deliveries = waiters + withoutCrowded(departing(others))
        if deliveries.isEmpty { return [] }
        let answers = await targets.find(deliveries, now: now)
        let found = answers.map(\.found)
        let changed = answers.indices.filter { answers[$0].isChanged }
        let gone = changed.isEmpty ? [] : await follow(changed, of: deliveries, found)
        if isClosed { return [] }
        let now = now
        var ready: [Addressed] = []
        var urgent: [Int] = []
        var asked: [Int] = []
        for (index, found) in found.enumerated() where !gone.contains(index) {
            let delivery = deliveries[index]
            guard case .target(let target, _) = found else {
                ready.append(Addressed(delivery: delivery, found: found))
                continue
            }
            if delivery.isUrgent {
                urgent.append(index)
            } else if index >= waiters.count, queue.hasParked(on: target.route) {
                // Whoever has waited goes first; urgent ones pass.
                queue.park(delivery, on: target.route)
            } else {
                asked.append(index)
            }
        }
        let urgentCount = urgent.count
        asked = urgent + asked
        let candidates = asked.enumerated().compactMap { place, index in
            if case .target(let target, _) = found[index] { PushCandidate(target: target, isUrgent: place < urgentCount) } else { nil }
        }
        ready.reserveCapacity(ready.count + asked.count)
        for (place, admission) in gateway.admit(candidates).enumerated() {
            let delivery = deliveries[asked[place]]
            switch admission {
            case .go: ready.append(Addressed(delivery: delivery, found: found[asked[place]]))
            case .wait(let again):
                let route = candidates[place].target.route
                queue.park(delivery, on: route)
                laneWaits[route] = wait(again, now: now)
                refused.insert(route)
            case .deviceWait(let wait):
                var delivery = delivery
                delivery.dueAt = now + max(1, wait.milliseconds + 1)
                queue.insert(delivery)
            }
        }
        return ready
    }

    /// How long after an event was committed its pushes are taken to go the way that they went then, in milliseconds.
    private static let routeAge: Int64 = 60_000

    /// Parks what has just been decided behind others of its lane that wait already, urgent ones behind urgent ones: looking up where
    /// it goes would be for nothing, since that is looked up when its turn has come.
    private func withoutCrowded(_ deliveries: [PushRecord]) -> [PushRecord] {
        if queue.parkedCount == 0 { return deliveries }
        let now = now
        // Mostly all go the same way.
        var last: (route: PushRoute, isUrgent: Bool, isCrowded: Bool)?
        return deliveries.filter { delivery in
            guard let route = delivery.route, let timing = delivery.timing, now - timing.committedAt < Self.routeAge else { return true }
            let isUrgent = timing.isUrgent
            if last?.isUrgent != isUrgent || last?.route != route {
                last = (route, isUrgent, isUrgent ? queue.hasUrgentParked(on: route) : queue.hasParked(on: route))
            }
            guard last?.isCrowded == true else { return true }
            queue.park(delivery, on: route)
            return false
        }
    }
}
