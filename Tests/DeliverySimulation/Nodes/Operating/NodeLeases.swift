import HubCore
import HubStorage
import HubTesting

/// A node's part in what PostgreSQL says of partitions.
struct NodeOwning {
    /// Names the process in PostgreSQL, for as long as it lives.
    let process: Int64
    var book: LeaseBook
    /// Changes whenever the next look is put at another time.
    var lookStep = 0
    /// An answer on its way, and partitions that were taken and are not known to be.
    var answer: LeaseBook.Look?
    var taken: [Int32: Int64] = [:]
    /// Nothing passes between the node and PostgreSQL.
    var isCut = false
    /// The way breaks in the middle of the next commit.
    var cutsAtCommit = false
    /// The commit under way gets no answer.
    var isAnswerLost = false
    /// When the node last asked for a write because one had failed.
    var probedAt: Int64 = 0

    init(process: Int64) {
        self.process = process
        book = LeaseBook(me: process)
    }
}

/// Rows of leases and nodes, and the server that has them.
struct SimPostgres {
    var leases = Dictionary(uniqueKeysWithValues: (0..<Partition.count).map { ($0, LeaseBook.Look.Lease(owner: 0, epoch: 0)) })
    var beats: [Int64: Int64] = [:]
    /// The nodes' wall clocks at their last beats, which nobody asks for.
    var beatWalls: [Int64: Int64] = [:]
    var deaf: Set<Int64> = []
    var cutOff: Set<Int64> = []
    var connected: Set<Int64> = []
    var isUp = true
    /// Calls without an answer wait for their time to be over, or fail at once.
    var isSilent = false
    /// On the server's clock, which starts ahead of the simulation.
    var startedAt: Int64 = -60_000
    var clock: Int64 = 0

    mutating func remove(_ process: Int64) {
        beats[process] = nil
        for partition in leases.keys where leases[partition]?.owner == process { leases[partition]?.owner = 0 }
    }
}

/// Leases by the book that ships: `PostgresNode` without its connections.
extension NodeSimulation {
    func reaches(_ node: SimNode) -> Bool { postgres.isUp && !node.owning.isCut }

    /// Partitions that the node owns and was told of lately; none while it leaves.
    func ownedNow(_ node: SimNode) -> Set<Int32> {
        node.operation.isLeaving || !node.owning.book.mayAct(at: now) ? [] : Set(node.owning.book.owned.keys)
    }

    /// Time from the start of a transaction to its end.
    func transactionTime(_ node: SimNode) -> Int64 { reaches(node) ? between(2, 15) : postgres.isSilent ? 900 : between(0, 3) }

    /// The fence of a transaction that begins now; nil: it is refused.
    func fence(of node: SimNode) -> [Int32: Int64]? {
        if node.operation.hasLeft { return [:] }
        return node.owning.book.mayAct(at: now) || settings.broken == .noFence ? node.owning.book.owned : nil
    }

    func passes(_ fence: [Int32: Int64], _ process: Int64) -> Bool {
        settings.broken == .noFence
            || fence.allSatisfy { partition, epoch in
                guard let lease = postgres.leases[partition] else { return false }
                return lease.owner == process && lease.epoch == epoch
            }
    }

    /// Whether a transaction of the node reaches the server now and passes its fence.
    func transacts(_ node: SimNode) -> Bool {
        guard reaches(node), let fence = fence(of: node) else { return false }
        postgres.connected.insert(node.owning.process)
        return passes(fence, node.owning.process)
    }

    // MARK: Looks

    /// Has the node look so many milliseconds from now.
    func scheduleLook(_ node: SimNode, after delay: Int64) {
        node.owning.lookStep += 1
        schedule(delay, .look(node.index, life: node.life, step: node.owning.lookStep))
    }

    func look(_ node: SimNode, _ step: Int) {
        guard step == node.owning.lookStep, !node.operation.hasLeft else { return }
        let process = node.owning.process
        // A message of its own comes back with each beat, at the latest.
        node.owning.book.note(hears: !node.isJoining && now - node.beatAt < 3000)
        leaveWhileCutOff(node)
        defer { node.owning.lookStep += 1 }
        func answers(after delay: Int64) { schedule(delay, .looked(node.index, life: node.life, step: step + 1)) }
        guard reaches(node) else {
            node.owning.answer = nil
            return answers(after: postgres.isSilent ? LeaseBook.lookMax : between(0, 3))
        }
        postgres.connected.insert(process)
        postgres.beats[process, default: 0] += 1
        postgres.beatWalls[process] = wall(node)
        if node.owning.book.isDeaf { postgres.deaf.insert(process) } else { postgres.deaf.remove(process) }
        if node.owning.book.isCutOff { postgres.cutOff.insert(process) } else { postgres.cutOff.remove(process) }
        var nodes = postgres.beats
        if settings.broken == .leaseByClock {
            nodes = nodes.filter { $0.key == process || wall(node) - (postgres.beatWalls[$0.key] ?? 0) < 3500 }
        }
        node.owning.answer = LeaseBook.Look(
            nodes: nodes, deaf: postgres.deaf, cutOff: postgres.cutOff, leases: postgres.leases,
            unconnected: Set(nodes.keys.filter { !postgres.connected.contains($0) }), serverStart: "\(postgres.startedAt)",
            serverUp: now + postgres.clock - postgres.startedAt, sentAt: now, answeredAt: now)
        answers(after: chance(1) ? between(15, 1500) : between(1, 15))
    }

    /// The look is answered, and what it leads to is sent.
    func looked(_ node: SimNode, _ step: Int) {
        guard step == node.owning.lookStep, !node.operation.hasLeft else { return }
        guard var look = node.owning.answer else {
            node.owning.book.failed()
            return scheduleLook(node, after: LeaseBook.lookEvery)
        }
        look.answeredAt = now
        let actions = node.owning.book.take(look)
        guard !actions.isEmpty else { return scheduleLook(node, after: LeaseBook.lookEvery) }
        var isNudged = false
        for action in actions {
            if case .giveBack(let partitions) = action {
                settleUnknown(node)
                node.owning.book.gives(partitions)
            }
            guard reaches(node) else { continue }
            switch action {
            case .take(let partition, let owner): isNudged = !take(partition, from: owner, node) && owner == 0 || isNudged
            case .giveBack(let partitions):
                handovers.append(now)
                for partition in partitions where postgres.leases[partition]?.owner == node.owning.process {
                    postgres.leases[partition]?.owner = 0
                }
            case .forget(let other): postgres.beats[other] = nil
            }
        }
        node.owning.lookStep += 1
        schedule(between(1, 15), .carried(node.index, life: node.life, step: node.owning.lookStep, isNudged: isNudged))
    }

    /// - Returns: whether the partition was still the other's.
    private func take(_ partition: Int32, from owner: Int64, _ node: SimNode) -> Bool {
        guard let lease = postgres.leases[partition], lease.owner == owner else { return false }
        if owner != 0, let other = nodes.first(where: { $0.isUp && $0.owning.process == owner }), other.owning.book.mayAct(at: now),
            other.owning.book.owned[partition] != nil
        {
            violation("node \(node.index) takes partition \(partition) of node \(other.index), which may still act")
        }
        let epoch = max(lease.epoch + 1, (ManualClock.start + now + postgres.clock) * 1000)
        postgres.leases[partition] = LeaseBook.Look.Lease(owner: node.owning.process, epoch: epoch)
        node.owning.taken[partition] = epoch
        return true
    }

    func carried(_ node: SimNode, _ step: Int, isNudged: Bool) {
        guard step == node.owning.lookStep, !node.operation.hasLeft else { return }
        node.owning.book.took(node.owning.taken)
        node.owning.taken = [:]
        scheduleLook(node, after: isNudged ? 0 : LeaseBook.lookEvery)
    }

    /// Clients of a node that alone is cut off from Redis go to the others.
    private func leaveWhileCutOff(_ node: SimNode) {
        guard node.owning.book.isCutOff, !node.isJoining else { return }
        dropSockets(of: node)
        for number in node.subscribers.flatMap({ $0 }) { disconnect(number, mayReturn: true) }
    }
}
