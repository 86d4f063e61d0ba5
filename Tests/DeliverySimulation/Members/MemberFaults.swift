import HubChannels
import HubCore
import HubScaleOut
import HubTesting
import RedisModel

/// Faults of nodes, of Redis and of the ways to it.
extension MemberSimulation {
    func fault() {
        guard !isEnding else { return }
        schedule(between(0, 2 * settings.faultInterval), .fault)
        let node = nodes[Int.random(in: nodes.indices, using: &random)]
        guard isCalm(for: 0) || chance(20), isWell(node), rolling == nil else { return }
        let isLonely = isCalm(for: 10_000)
        switch Int.random(in: 0..<8, using: &random) {
        case 0..<2:
            count("nodes killed")
            let away = between(500, 15_000)
            if isLonely { lonelyKill = now }
            kill(node)
            schedule(away, .boot(node.index))
            wrong(for: away + 6000)
        case 2: stop(node, for: chance(30) ? between(200, 3000) : between(8000, 10_000))
        case 3:
            count("slow nodes")
            let lasts = between(5000, 20_000)
            node.slowUntil = now + lasts
            slow(node)
            wrong(for: lasts + 2000)
        case 4: cut(node)
        case 5: loseMemory()
        case 6: failOver()
        default:
            count("rolling restarts")
            rolling = 0
            schedule(0, .roll(0))
        }
    }

    private func count(_ fault: String) { report.changes[fault, default: 0] += 1 }
    private func wrong(for milliseconds: Int64) { faultUntil = max(faultUntil, now + milliseconds) }

    private func kill(_ node: MemberNode) {
        report.crashes += 1
        node.isUp = false
        node.wellSince = .max
        for socket in node.sockets { gone(socket, .killed) }
        node.sockets = []
    }

    /// Webhooks may miss an end, or hear a coming again.
    private func forgetTold(_ reason: String) {
        report.changes[reason, default: 0] += 1
        told = [:]
        for node in facts.indices { facts[node] = [:] }
    }

    private func stop(_ node: MemberNode, for lasts: Int64) {
        count("nodes stopped")
        node.isStopped = true
        schedule(lasts, .resume(node.index, life: node.life))
        wrong(for: lasts + 5000)
    }

    /// A slow node stands still most of the time.
    func slow(_ node: MemberNode) {
        guard now < node.slowUntil else { return }
        node.isStopped = true
        schedule(between(100, 2500), .resume(node.index, life: node.life))
    }

    func resume(_ node: MemberNode) {
        node.isStopped = false
        node.wellSince = node.isConnected ? now : node.wellSince
        let waiting = node.waiting
        node.waiting = []
        // Before whatever else happens in this millisecond: nothing overtakes on one connection.
        for action in waiting { perform(action) }
        if now < node.slowUntil { schedule(between(10, 50), .slow(node.index, life: node.life)) }
    }

    private func cut(_ node: MemberNode) {
        let (way, lasts) = (between(0, 2), between(500, 10_000))
        count(["nodes cut off from Redis", "nodes that Redis does not hear", "nodes that do not hear Redis"][Int(way)])
        (node.isUnheard, node.isDeaf, node.cutAt) = (way != 2, way != 1, now)
        schedule(lasts, .heal(node.index))
        wrong(for: lasts + 5000)
    }

    func heal(_ node: MemberNode) {
        guard node.isCut else { return }
        (node.isUnheard, node.isDeaf) = (false, false)
        // Its words about the lost memory come late to the new one.
        if lossAt + 10_000 > node.cutAt { forgetTold("cuts over the loss of a memory") }
        node.wellSince = node.isConnected ? now : node.wellSince
    }

    private func loseMemory() {
        count("Redis restarted empty")
        let away = chance(10) ? between(30_000, 60_000) : between(200, 6000)
        isRedisUp = false
        (lossAt, isSplit) = (now + away, false)
        schedule(away, .redisBack)
        wrong(for: away + 10_000)
    }

    func redisBack() {
        lastWord += 1
        redis.lose(process: "process\(lastWord)")
        loadScripts()
        isRedisUp = true
    }

    /// A replica takes over, of which the scripts know nothing. The nodes come to it one after the other.
    private func failOver() {
        count("failovers of Redis")
        (lossAt, isSplit) = (now, true)
        lastWord += 1
        redis = RedisModel(process: "process\(lastWord)")
        loadScripts()
        for node in nodes where node.isUp { schedule(between(0, 3000), .moves(node.index, life: node.life)) }
        wrong(for: 13_000)
    }

    func moves(_ node: MemberNode) {
        node.redis = redis
        node.greeting = nil
        node.isReading = false
        planRead(node, after: 0)
    }

    /// A rolling restart goes on with the next node once the one before is back.
    func roll(_ index: Int) {
        guard index < nodes.count else {
            rolling = nil
            return wrong(for: 5000)
        }
        let node = nodes[index]
        guard node.isUp, node.isConnected, !node.isStopped else { return schedule(500, .roll(index)) }
        rolling = index
        leave(node)
    }
}
