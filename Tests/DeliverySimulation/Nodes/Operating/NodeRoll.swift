import HubCore
import HubDelivery
import HubScaleOut

/// A node's part in restarts and upgrades.
struct NodeOperation {
    /// Steps of a stop, each with the next one's condition.
    enum Stage { case left, settled, sent, handedOver, taken, told, answered }

    /// Lets nobody in.
    var isDraining = false
    /// Decides about nothing from now on.
    var isLeaving = false
    /// Has handed its partitions over.
    var hasLeft = false
    /// Takes no publishes.
    var isClosing = false
    /// Partitions whose next owners have not been told who is present here.
    var untold: Set<Int32> = []
    /// Answers to them on their way, by the numbers of the messages.
    var telling: [(number: UInt64, partitions: Set<Int32>)] = []
    var stoppingSince: Int64 = 0
    let versions: MessageVersions
    var written: WrittenVersion
    /// Messages of before this node joined, by the last number of each run.
    var before: [UInt64: UInt64] = [:]
    /// Waits until the others write what this build reads, by the beats that they will have had then.
    var isWaiting = false
    /// When the process took part for the first time.
    var takesPartSince: Int64?
    var awaited: [UInt64: Int64] = [:]

    init(_ versions: MessageVersions) {
        self.versions = versions
        written = WrittenVersion(versions)
    }
}

/// Restarts of all nodes, one after the other.
struct NodeRoll {
    var left: [Int]
    /// Versions of messages that the new build reads.
    let versions: MessageVersions
}

/// The stop as `Server.stop` orders it, and who writes which version.
extension NodeSimulation {
    private static let oldBuild = MessageVersions(1, 1)
    private static let newBuild = MessageVersions(1, 2)
    static let firstBuild = oldBuild

    /// Every other one brings a build that reads more, or the one of before.
    func beginRoll() {
        guard roll == nil else { return }
        var versions = builds[0]
        if chance(50) {
            versions = versions == Self.oldBuild ? Self.newBuild : Self.oldBuild
            count(versions == Self.newBuild ? "rolling upgrades" : "rolling downgrades")
        } else {
            count("rolling restarts")
        }
        roll = NodeRoll(left: Array(nodes.indices), versions: versions)
        schedule(0, .roll)
    }

    /// Stops the next node once all are well.
    func rollOn() {
        guard let index = roll?.left.first else {
            roll = nil
            return
        }
        let processes = Set(nodes.map(\.owning.process))
        let areWell = nodes.allSatisfy {
            $0.isUp && !$0.isStopped && !$0.isJoining && !$0.operation.isDraining && $0.owning.book.living.isSuperset(of: processes)
        }
        guard areWell, postgres.isUp, isRedisUp else { return schedule(500, .roll) }
        roll?.left.removeFirst()
        builds[index] = roll?.versions ?? builds[index]
        stopGracefully(nodes[index])
        schedule(500, .roll)
    }

    private func stopGracefully(_ node: SimNode) {
        (node.operation.isDraining, node.operation.stoppingSince) = (true, now)
        handovers.append(now)
        let others = node.owning.book.living.subtracting([node.owning.process])
        guard !others.isEmpty, settings.broken != .abruptStop else { return sendAway(node) }
        node.operation.untold = ownedNow(node)
        node.operation.isLeaving = true
        go(.left, node, until: now + 1000)
    }

    private func go(_ stage: NodeOperation.Stage, _ node: SimNode, until end: Int64) {
        schedule(10, .leaves(node.index, life: node.life, stage, until: end))
    }

    /// Looks whether the stop may go on.
    func leave(_ node: SimNode, _ stage: NodeOperation.Stage, until end: Int64) {
        let isDone =
            switch stage {
            case .left: node.owned.isEmpty && node.told.isEmpty
            case .settled: node.work.isEmpty && !node.isPlanning
            case .sent: !isSending(node)
            case .handedOver: true
            case .taken: !postgres.leases.values.contains { $0.owner == 0 }
            case .told: node.operation.untold.isEmpty
            case .answered: node.asked.isEmpty && node.phase == .rest && node.inbox.isEmpty && node.work.isEmpty && !isSending(node)
            }
        guard isDone || now >= end else { return go(stage, node, until: end) }
        switch stage {
        case .left: go(.settled, node, until: now + 1000)
        case .settled: go(.sent, node, until: now + 1000)
        case .sent: go(.handedOver, node, until: now)
        case .handedOver:
            settleUnknown(node)
            guard transacts(node) else { return sendAway(node) }
            node.operation.hasLeft = true
            node.owning.book.gives(Array(node.owning.book.owned.keys))
            postgres.remove(node.owning.process)
            for other in nodes where other.isUp && other !== node { scheduleLook(other, after: between(1, 15)) }
            go(.taken, node, until: now + 1000)
        case .taken: go(.told, node, until: now + 1000)
        case .told: sendAway(node)
        case .answered: exit(node)
        }
    }

    private func isSending(_ node: SimNode) -> Bool {
        settings.broken != .abruptStop && openPushes.contains { pushes[$0].leasedBy == node.owning.process && pushes[$0].isSending }
    }

    private func sockets(of node: SimNode) -> [Int] { node.subscribers.flatMap { $0 } }

    /// Sends some clients away, and the next ones later: 333 in a second.
    func sendAway(_ node: SimNode) {
        let here = sockets(of: node)
        guard !here.isEmpty else {
            node.operation.isClosing = true
            return go(.answered, node, until: max(now, node.operation.stoppingSince + 9000))
        }
        farewells.append(now)
        for number in here.shuffled(using: &random).prefix(17) {
            drop(number)
            disconnect(number, mayReturn: true)
        }
        schedule(between(25, 75), .sendsAway(node.index, life: node.life))
    }

    private func exit(_ node: SimNode) {
        if settings.broken != .abruptStop, reaches(node) {
            settleUnknown(node)
            postgres.remove(node.owning.process)
        }
        if !node.isDeaf, isLinked(node) {
            memories[node.writer].end(node.run, now: now)
            wakeReaders(of: node.writer)
        }
        node.isUp = false
        dropSockets(of: node)
        postgres.connected.remove(node.owning.process)
        schedule(between(1000, 3000), .boot(node.index))
    }

    // MARK: Versions

    /// A beat of the node is answered, or is not.
    func lookAtVersions(_ node: SimNode, isAnswered: Bool) {
        guard isAnswered else { return node.operation.written.reset() }
        let there = memories[node.writer].beats.keys
        node.operation.written.look(there.compactMap { versionsRead[$0]?.highest }.min() ?? node.operation.versions.highest)
    }

    /// The node is about to write its next message.
    func noteVersion(_ node: SimNode) {
        let version = settings.broken == .versionAtOnce ? node.operation.versions.highest : node.operation.written.now
        if versionsWritten[node.run]?.last?.version != version { versionsWritten[node.run, default: []].append((node.lastNumber, version)) }
    }

    func checkVersion(_ number: UInt64, of origin: UInt64, _ node: SimNode) {
        guard let version = versionsWritten[origin]?.last(where: { $0.from <= number })?.version else { return }
        if !node.operation.versions.contains(version), number > node.operation.before[origin] ?? 0 {
            violation("node \(node.index) cannot read message \(number) of run \(origin), written in version \(version)")
        }
    }

    /// A node of an older build waits for two more beats of each other node, which lowers its version by them.
    /// - Returns: whether the node has to wait.
    func waitUntilLowered(_ node: SimNode) -> Bool {
        let others = memories[node.writer].beats.filter { $0.key != node.run }
        let read = others.keys.compactMap { versionsRead[$0]?.highest }.min() ?? 0
        guard read > node.operation.versions.highest else { return false }
        node.operation.isWaiting = true
        node.operation.awaited = others.mapValues { $0 + 2 }
        schedule(500, .lowered(node.index, life: node.life, until: now + 5000))
        return true
    }

    func lowered(_ node: SimNode, until end: Int64) {
        let beats = memories[node.writer].beats
        let isLowered = node.operation.awaited.allSatisfy { run, beat in beats[run].map { $0 >= beat } ?? true }
        guard isLowered || now >= end else { return schedule(500, .lowered(node.index, life: node.life, until: end)) }
        guard node.operation.awaited.isEmpty else {
            // Messages that waited to be appended are in the stream after this.
            node.operation.awaited = [:]
            return schedule(Self.appendMax, .lowered(node.index, life: node.life, until: end))
        }
        guard isRedisUp, !node.isCut else { return schedule(250, .lowered(node.index, life: node.life, until: end)) }
        node.operation.isWaiting = false
        // A start that meets a declaration of its death begins anew, under another run.
        if memories[memories.count - 1].dead.contains(node.run) { return joinAnew(node) }
        takePart(node)
    }
}
