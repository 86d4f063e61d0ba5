import HubCore
import HubDelivery
import HubScaleOut

/// Faults of nodes, of Redis and of the ways to it; and the signs of life.
extension NodeSimulation {
    /// How long a fault lasts, and then until everybody has found everybody again.
    private static let aftermath: Int64 = 15_000

    func fault() {
        guard !isEnding else { return }
        schedule(between(0, 2 * settings.faultInterval), .fault)
        let node = nodes[Int.random(in: nodes.indices, using: &random)]
        let areWell = nodes.allSatisfy { $0.isUp && !$0.isStopped && !$0.isCut && !$0.isSlow }
        let isFirst = areWell && isRedisUp && isOperatedWell
        guard isFirst || chance(20), node.isUp, !node.isStopped, !node.isCut, !node.isSlow else { return }
        if chance(50) { return operate(node) }
        let lasts: Int64
        switch Int.random(in: 0..<8, using: &random) {
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
        case 3:
            guard isRedisUp else { return }
            lasts = between(500, 6000)
            count("Redis restarted empty")
            loseMemory()
            schedule(lasts, .redisBack)
        case 4:
            guard isRedisUp else { return }
            lasts = 3000
            count("failovers of Redis")
            failOver(within: lasts)
        default:
            lasts = between(5000, 20_000)
            // A node that answers within a round may be late, and is no excuse for anything.
            let isLoaded = chance(66)
            count(isLoaded ? "nodes loaded" : "nodes slow")
            node.isSlow = true
            slow(node, until: now + lasts, most: isLoaded ? 1200 : 2500)
            if isLoaded { return }
        }
        note(lasts)
    }

    func note(_ lasts: Int64) { faults.append((now - 500, now + lasts + Self.aftermath)) }

    func stop(_ node: SimNode) {
        count(node.stopsAtCommit ? "nodes stopped in a commit" : "nodes stopped")
        let lasts = chance(30) ? between(200, 3000) : between(3500, 10_000)
        (node.isStopped, node.stopsAtCommit) = (true, false)
        schedule(lasts, .resume(node.index))
        note(lasts)
    }

    func count(_ fault: String) { report.changes[fault, default: 0] += 1 }

    private func kill(_ node: SimNode) {
        report.crashes += 1
        // The disk may have had it before the process could tell.
        if let batch = node.committing, chance(50) { _ = store(batch, of: node) }
        if let write = node.writing, chance(50), transacts(node) { escalate(write, of: node) }
        node.isUp = false
        postgres.connected.remove(node.owning.process)
        dropSockets(of: node)
    }

    func boot(_ index: Int) {
        // A node without Redis does not start.
        guard isRedisUp else { return schedule(250, .boot(index)) }
        lastRun += 1
        let node = SimNode(
            index: index, process: Int64(lastRun), versions: builds[index], book: newBook(run: lastRun), channels: settings.channels)
        (node.run, node.life, node.isUp) = (lastRun, nodes[index].life + 1, true)
        nodes[index] = node
        schedule(between(0, 500), .beat(index, life: node.life))
        schedule(between(0, 250), .redis(.tick, index, life: node.life))
        scheduleLook(node, after: between(0, 500))
        node.isJoining = true
        join(node)
    }

    private func begin(_ node: SimNode) {
        findRedis(node)
        node.position = memories[node.reader].end
        send(.hello(isQuestion: true), node)
    }

    /// The node stands still, runs for a moment, and stands still again.
    func slow(_ node: SimNode, until: Int64, most: Int64) {
        guard now < until, !node.isStopped, !isEnding else {
            node.isSlow = false
            return
        }
        node.isStopped = true
        let stands = between(100, most)
        schedule(stands, .resume(node.index))
        schedule(stands + between(10, 50), .slow(node.index, life: node.life, until: until, most: most))
    }

    func resume(_ node: SimNode) {
        guard node.isStopped else { return }
        node.isStopped = false
        let waiting = node.waiting
        node.waiting = []
        // Before whatever else happens in this millisecond: nothing overtakes on one connection.
        for action in waiting { perform(action) }
    }

    func heal(_ node: SimNode) {
        guard node.isCut else { return }
        (node.isUnheard, node.isDeaf) = (false, false)
        catchUp(node)
    }

    // MARK: Joining

    /// The others have declared the node dead: its people get 4200. Others may come before it joins anew.
    func drain(_ node: SimNode) {
        if node.isJoining { return }
        node.isJoining = true
        dropSockets(of: node)
        for number in node.subscribers.flatMap({ $0 }) { disconnect(number, mayReturn: true) }
        schedule(between(0, 250), .greet(node.index, life: node.life))
    }

    /// The node takes part as a new one, and says who has come to it meanwhile.
    func joinAnew(_ node: SimNode) {
        guard isRedisUp, !node.isCut else { return schedule(250, .greet(node.index, life: node.life)) }
        lastRun += 1
        node.run = lastRun
        for number in node.subscribers.flatMap({ $0 }) { sockets[number].run = node.run }
        (node.sent, node.words, node.firstWord, node.lastNumber, node.passing) = (SentEntries(), [:], 1, 0, [])
        (node.trim, node.watch) = (TrimPoint(), NodeWatch())
        (node.operation.written, node.operation.telling) = (WrittenVersion(node.operation.versions), [])
        join(node)
    }

    /// Connects to the memory of now, and beats there.
    private func findRedis(_ node: SimNode) {
        let memory = memories.count - 1
        (node.writerRoute, node.readerRoute, node.writer, node.reader) = (memory, memory, memory, memory)
        memories[memory].beat(node.run)
        node.beatAt = now
    }

    /// Beats for the first time, and takes part once the others write what this build reads.
    private func join(_ node: SimNode) {
        versionsRead[node.run] = node.operation.versions
        findRedis(node)
        if !waitUntilLowered(node) { takePart(node) }
    }

    func takePart(_ node: SimNode) {
        node.isJoining = false
        for other in nodes { node.operation.before[other.run] = other.lastNumber }
        begin(node)
        guard node.operation.takesPartSince != nil else {
            node.operation.takesPartSince = now
            return schedule(between(0, 250), .poll(node.index, life: node.life))
        }
        giveUpLost(node)
        if settings.broken != .silentGreeting { attend(node, 0, Set(0..<Partition.count), asker: node.run) }
        post(.restarted, node)
    }

    /// Rows of publishes are due by their askers' clocks.
    private func isDue(_ index: Int, _ node: SimNode) -> Bool { publishes[index].id.time <= wall(node) }

    /// Every 250 ms: the leases, and publishes that wait in the store.
    func poll(_ node: SimNode) {
        schedule(250, .poll(node.index, life: node.life))
        let owned = ownedNow(node)
        if owned != node.told {
            node.told = owned
            post(.owned(owned), node)
        }
        // A store that has failed is asked for a write each second.
        if now - node.owning.probedAt >= 1000 {
            node.owning.probedAt = now
            settleUnknown(node)
        }
        guard reaches(node) else { return }
        for index in waitingRows.sorted() where owned.contains(channels[publishes[index].channel].partition) && isDue(index, node) {
            post(.row(index), node)
        }
    }
}
