import HubCore
import HubDelivery

/// Faults of nodes, of Redis and of the ways to it; and the signs of life.
extension NodeSimulation {
    /// How long a fault lasts, and then until everybody has found everybody again.
    private static let aftermath: Int64 = 15_000

    func fault() {
        guard !isEnding else { return }
        schedule(between(0, 2 * settings.faultInterval), .fault)
        let node = nodes[Int.random(in: nodes.indices, using: &random)]
        let isFirst = nodes.allSatisfy { $0.isUp && !$0.isStopped && !$0.isCut } && isRedisUp
        guard isFirst || chance(20), node.isUp, !node.isStopped, !node.isCut else { return }
        let lasts: Int64
        switch Int.random(in: 0..<4, using: &random) {
        case 0:
            lasts = between(500, 5000)
            count("nodes killed")
            kill(node)
            schedule(lasts, .boot(node.index))
        case 1:
            if chance(50) {
                node.stopsAtCommit = true
            } else {
                stop(node)
            }
            return
        case 2:
            lasts = between(500, 10_000)
            let way = between(0, 2)
            count(["nodes cut off from Redis", "nodes that Redis does not hear", "nodes that do not hear Redis"][Int(way)])
            (node.isUnheard, node.isDeaf) = (way != 2, way != 1)
            schedule(lasts, .heal(node.index))
        default:
            guard isRedisUp else { return }
            lasts = between(500, 6000)
            count("Redis restarted empty")
            isRedisUp = false
            // Memory and the places in it are gone.
            stream = []
            for node in nodes {
                node.position = 0
                for place in node.kept.indices { node.kept[place].isAppended = false }
            }
            schedule(lasts, .redisBack)
        }
        note(lasts)
    }

    private func note(_ lasts: Int64) { faults.append((now - 500, now + lasts + Self.aftermath)) }

    func stop(_ node: SimNode) {
        count(node.stopsAtCommit ? "nodes stopped in a commit" : "nodes stopped")
        let lasts = chance(30) ? between(200, 3000) : between(8000, 10_000)
        (node.isStopped, node.stopsAtCommit) = (true, false)
        schedule(lasts, .resume(node.index))
        note(lasts)
    }

    private func count(_ fault: String) { report.changes[fault, default: 0] += 1 }

    private func kill(_ node: SimNode) {
        report.crashes += 1
        // The disk may have had it before the process could tell.
        if let batch = node.committing, chance(50) { _ = store(batch, of: node) }
        if let write = node.writing, chance(50) { escalate(write, of: node) }
        node.isUp = false
        dropSockets(of: node)
    }

    func boot(_ index: Int) {
        lastRun += 1
        let node = SimNode(index: index, book: newBook(run: lastRun), channels: settings.channels)
        (node.run, node.life, node.isUp) = (lastRun, nodes[index].life + 1, true)
        node.position = stream.count
        nodes[index] = node
        begin(node)
        schedule(between(0, 500), .beat(index, life: node.life))
        schedule(between(0, 250), .poll(index, life: node.life))
    }

    private func begin(_ node: SimNode) {
        (members[node.run], leases[node.run]) = (now, now)
        (node.beatAt, node.leaseAt) = (now, now)
        send(.hello(isQuestion: true), node)
    }

    func resume(_ node: SimNode) {
        guard node.isStopped else { return }
        node.isStopped = false
        let waiting = node.waiting
        node.waiting = []
        for action in waiting { schedule(0, action) }
    }

    func heal(_ node: SimNode) {
        guard node.isCut else { return }
        (node.isUnheard, node.isDeaf) = (false, false)
        catchUp(node)
    }

    func redisBack() {
        isRedisUp = true
        redisSince = now
        for node in nodes where node.isUp { catchUp(node) }
    }

    private func catchUp(_ node: SimNode) {
        schedule(1, .append(node.index, life: node.life))
        schedule(2, .read(node.index, life: node.life))
    }

    // MARK: Signs of life

    func beat(_ node: SimNode) {
        schedule(500, .beat(node.index, life: node.life))
        guard !node.isUnheard, isRedisUp else { return }
        // A beat of the dead changes nothing.
        if !swept.contains(node.run) { members[node.run] = now }
        if node.isDeaf { return }
        if swept.contains(node.run) { return drain(node) }
        node.beatAt = now
    }

    /// The others have declared the node dead: its people get 4200. Others may come before it joins anew.
    private func drain(_ node: SimNode) {
        if node.isJoining { return }
        node.isJoining = true
        dropSockets(of: node)
        for number in node.subscribers.flatMap({ $0 }) { disconnect(number, mayReturn: true) }
        schedule(between(0, 250), .greet(node.index, life: node.life))
    }

    /// The node takes part as a new one, and says who has come to it meanwhile.
    func joinAnew(_ node: SimNode) {
        lastRun += 1
        node.run = lastRun
        node.isJoining = false
        for number in node.subscribers.flatMap({ $0 }) { sockets[number].run = node.run }
        node.kept = []
        node.lastNumber = 0
        node.position = stream.count
        begin(node)
        if settings.broken != .silentGreeting { attend(node, 0, Set(0..<Partition.count), asker: node.run) }
        post(.restarted, node)
    }

    /// Every 250 ms: the beat in PostgreSQL, the leases, and publishes that wait in the store.
    func poll(_ node: SimNode) {
        schedule(250, .poll(node.index, life: node.life))
        // Whom Redis does not hear while others are heard gives its partitions back.
        let isAlone = now - node.beatAt > 3000 && isRedisUp && members.contains { $0.key != node.run && now - $0.value < 1000 }
        if isAlone {
            leases[node.run] = nil
        } else {
            leases[node.run] = now
            node.leaseAt = now
        }
        let owned = isAlone ? [] : Set(owners.filter { $0.value == node.run }.keys)
        if owned != node.told {
            node.told = owned
            post(.owned(owned), node)
        }
        settleUnknown(node)
        for index in waitingRows.sorted() where owned.contains(channels[publishes[index].channel].partition) { post(.row(index), node) }
    }
}
