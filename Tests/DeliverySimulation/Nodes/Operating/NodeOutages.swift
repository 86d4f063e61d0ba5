import HubCore
import HubDelivery
import HubTesting

/// PostgreSQL away from all nodes or from one, and clocks that are set.
extension NodeSimulation {
    /// Nobody's way to PostgreSQL, and nobody's process, is out of order.
    var isOperatedWell: Bool { postgres.isUp && roll == nil && nodes.allSatisfy { !$0.owning.isCut } }

    func operate(_ node: SimNode) {
        switch Int.random(in: 0..<5, using: &random) {
        case 0:
            guard postgres.isUp else { return }
            count("PostgreSQL away")
            (postgres.isUp, postgres.isSilent) = (false, chance(50))
            for node in nodes where node.isUp { interrupt(node) }
            let lasts = between(500, 30_000)
            schedule(lasts, .postgresBack(isRestarted: chance(50)))
            outages.append((now, now + lasts))
            note(lasts)
        case 1:
            if chance(50) {
                node.owning.cutsAtCommit = true
            } else {
                cut(node)
            }
        case 2, 3: beginRoll()
        default: setClock()
        }
    }

    /// Whether PostgreSQL was away from some node after this time.
    func wasAway(since time: Int64) -> Bool { outages.contains { $0.until > time && $0.from < now } }

    /// Whether a write of the event's last call may have met an outage, and its repetition came too late.
    func wasAway(atEndOf event: NodeEvent) -> Bool {
        let end = event.committedAt + event.lifetime
        return outages.contains { $0.from < end && $0.until > end - Decision.lastCallMilliseconds - 2000 }
    }

    func cut(_ node: SimNode) {
        node.owning.cutsAtCommit = false
        guard !node.owning.isCut else { return }
        count("nodes cut off from PostgreSQL")
        interrupt(node)
        node.owning.isCut = true
        let lasts = between(500, 30_000)
        schedule(lasts, .postgresFound(node.index, life: node.life))
        outages.append((now, now + lasts))
        note(lasts)
    }

    /// The way breaks in the middle of transactions: those under way may be in the store, and their answers are lost.
    private func interrupt(_ node: SimNode) {
        guard reaches(node) else { return }
        if let batch = node.committing {
            if chance(50) { commitUnknown(batch, node) }
            node.owning.isAnswerLost = true
        }
        if let write = node.writing, chance(50), transacts(node) { escalate(write, of: node) }
    }

    func postgresBack(isRestarted: Bool) {
        postgres.isUp = true
        guard isRestarted else { return }
        count("PostgreSQL restarted")
        postgres.startedAt = now + postgres.clock
        postgres.connected = []
    }

    // MARK: Clocks

    func wall(_ node: SimNode) -> Int64 { ManualClock.start + now + clocks[node.index] }
    func moment(_ node: SimNode) -> Moment { Moment(monotonic: now, wall: wall(node)) }

    /// A clock is set, and set right after a while. Monotonic clocks go on.
    private func setClock() {
        let step = between(1000, chance(70) ? 20_000 : 300_000)
        let place = Int.random(in: 0...nodes.count, using: &random)
        count(place < nodes.count ? "clocks of nodes set" : "PostgreSQL's clock set")
        setClock(place, ahead: chance(50) ? step : -step)
        schedule(between(5000, 60_000), .clockRight(place))
    }

    func setClock(_ place: Int, ahead: Int64) {
        if place < nodes.count {
            clocks[place] = ahead
        } else {
            postgres.clock = ahead
        }
    }
}
