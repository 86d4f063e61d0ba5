import HubCore
import HubDelivery
import HubScaleOut
import HubTesting

/// The stream in Redis as a node appends to it and reads it: `EventStream` with the values that ship, over memories that come and go.
extension NodeSimulation {
    /// Work of a node's ways to Redis.
    enum RedisWork {
        /// Every 250 ms: what waited too long fails, and what has no answer is tried again.
        case tick
        /// From now on the node reaches another memory, with its connection that writes or with the one that reads.
        case moves(writes: Bool, to: Int)
        /// Twice after a memory, or this run, is new: others who have not come to it are given up.
        case counts(round: UInt64)
    }

    /// Time for a message to be appended that is given up else.
    static let appendMax: Int64 = 1500
    /// A message that is read later than this after the last beat is not handed on.
    private static let certainMilliseconds: Int64 = 3000
    private static let trimEvery: Int64 = 5000
    /// Milliseconds by which a clock is ahead that nothing may go by.
    private static let wrongClock: Int64 = 180_000

    /// The memory that newcomers find.
    var isRedisUp: Bool { memories[memories.count - 1].isUp }

    /// Whether the others have declared the node dead where it reads.
    func isDead(_ node: SimNode) -> Bool { memories[node.reader].dead.contains(node.run) }

    func work(_ work: RedisWork, _ node: SimNode) {
        switch work {
        case .tick: tick(node)
        case .moves(let writes, let memory):
            if writes { node.writerRoute = max(node.writerRoute, memory) } else { node.readerRoute = max(node.readerRoute, memory) }
            scheduleRead(node, after: between(1, 4))
        case .counts(let round):
            guard node.giveUps == round else { return }
            let gone = Set(node.table.keys).subtracting(node.greeted).subtracting(node.watch.living)
            node.absent.formUnion(gone)
            node.greeted = []
        }
    }

    // MARK: Appending

    /// - Returns: the message's number.
    @discardableResult
    func send(_ message: NodeMessage, _ node: SimNode) -> UInt64? {
        let isPassing =
            switch message {
            case .publish, .event: true
            case .attend: settings.broken == .questionGivenUp
            // A node that stops waits until its next owners are told.
            case .attended: node.operation.isLeaving
            default: false
            }
        guard let number = node.sent.append([1], now: nanoseconds, isPassing: isPassing) else {
            violation("node \(node.index) keeps too much for Redis")
            return nil
        }
        node.words[number] = message
        node.lastNumber = number
        noteVersion(node)
        if isPassing { node.passing.append((number, now + Self.appendMax)) }
        schedule(1, .append(node.index, life: node.life))
        return number
    }

    /// The connection that writes is there, and greeted: in a new memory all that is kept is appended again.
    func isLinked(_ node: SimNode) -> Bool {
        guard !node.isUnheard, memories[node.writerRoute].isUp else { return false }
        if node.writer != node.writerRoute {
            node.writer = node.writerRoute
            if settings.broken != .noSecondAppend, settings.broken != .epochIgnored { node.sent.epochChanged() }
        }
        return !memories[node.writer].dead.contains(node.run)
    }

    func append(_ node: SimNode) {
        guard !node.operation.isWaiting, isLinked(node) else { return }
        let batch = node.sent.unanswered(most: 512, bytes: 1 << 20)
        guard let last = batch.last?.number else { return }
        let words = batch.map { (number: $0.number, message: $0.payload.isEmpty ? nil : node.words[$0.number]) }
        if memories[node.writer].append(words, of: node.run, now: now) { wakeReaders(of: node.writer) }
        // An answer is lost now and then: the entries are tried once more, under their numbers.
        if node.isDeaf || chance(1) && chance(20) { return }
        node.sent.answered(through: last)
        node.passing.removeAll { $0.number <= last }
        for told in node.operation.telling where told.number <= last { node.operation.untold.subtract(told.partitions) }
        node.operation.telling.removeAll { $0.number <= last }
        if node.sent.hasUnanswered { schedule(1, .append(node.index, life: node.life)) }
    }

    private func tick(_ node: SimNode) {
        schedule(250, .redis(.tick, node.index, life: node.life))
        node.sent.drop(now: nanoseconds)
        while node.firstWord + UInt64(node.sent.count) <= node.lastNumber {
            node.words[node.firstWord] = nil
            node.firstWord += 1
        }
        let late = node.passing.prefix { $0.deadline <= now }
        node.passing.removeFirst(late.count)
        for (number, _) in late {
            node.sent.giveUp(number)
            node.operation.telling.removeAll { $0.number == number }
            if let message = node.words[number] { failed(message, node) }
        }
        append(node)
    }

    /// The others may read the message, or may not.
    private func failed(_ message: NodeMessage, _ node: SimNode) {
        switch message {
        case .publish(let index): leaveToStore(index, node)
        case .event(let event):
            let partition = channels[publishes[events[event.event].publish].channel].partition
            guard ownedNow(node).contains(partition) else { break }
            node.alone.insert(event.serial)
            letOut(event, node)
        default: break
        }
    }

    private var nanoseconds: UInt64 { UInt64(now) * 1_000_000 }

    // MARK: Reading

    func wakeReaders(of memory: Int) {
        for reader in nodes where reader.isUp && reader.readerRoute == memory { scheduleRead(reader, after: between(1, 4)) }
    }

    private func scheduleRead(_ node: SimNode, after delay: Int64) {
        guard !node.isReadPlanned else { return }
        node.isReadPlanned = true
        schedule(delay, .read(node.index, life: node.life))
    }

    func readStream(_ node: SimNode) {
        node.isReadPlanned = false
        guard !node.isDeaf, !node.operation.isWaiting, memories[node.readerRoute].isUp else { return }
        if settings.broken != .noDeadline, now - node.beatAt > Self.certainMilliseconds { return scheduleRead(node, after: 50) }
        if node.reader != node.readerRoute { enter(node) }
        let end = memories[node.reader].end
        node.position = max(node.position, memories[node.reader].trimmed)
        while node.position < end {
            let entry = memories[node.reader][node.position]
            node.position += 1
            take(entry, node)
        }
        if now >= node.trimAt { trim(node) }
    }

    private func take(_ entry: SimMemory.Entry, _ node: SimNode) {
        let isBehind = entry.id <= node.lastRead
        node.lastRead = max(node.lastRead, entry.id)
        node.trim.read(entry.id, bytes: SentEntries.entryBytes)
        guard let (run, number) = entry.origin else {
            if let message = entry.message { take(message, of: 0, node) }
            return
        }
        if run == node.run, node.reader == node.writer { node.sent.readBack(number, now: nanoseconds) }
        if settings.broken == .pollByID {
            if isBehind { return }
        } else {
            switch node.received.take(number, of: run) {
            case .known: return
            case .gap: post(.gap(run), node)
            case .new: break
            }
        }
        guard let message = entry.message else { return }
        checkVersion(number, of: run, node)
        take(message, of: run, node)
    }

    /// A memory that the node has not read in before: all of it is read, and the others may have no word of this node.
    private func enter(_ node: SimNode) {
        node.reader = node.readerRoute
        if settings.broken == .epochIgnored {
            node.position = memories[node.reader].place(after: node.lastRead)
            return
        }
        node.position = 0
        node.absent = []
        node.trim.restart()
        giveUpLost(node)
        if settings.broken != .silentEpoch { sayWhoIsHere(node) }
        schedule(0, .append(node.index, life: node.life))
    }

    /// Others may be gone without a word that the node has read.
    func giveUpLost(_ node: SimNode) {
        node.greeted = []
        node.giveUps += 1
        // A node that has just greeted may not have beaten yet, or may be gone before its first beat.
        for delay: Int64 in [5000, 10_000] where settings.broken != .lostStay {
            schedule(delay, .redis(.counts(round: node.giveUps), node.index, life: node.life))
        }
    }

    private func sayWhoIsHere(_ node: SimNode) {
        send(.hello(isQuestion: false), node)
        attend(node, 0, Set(0..<Partition.count), asker: node.run)
    }

    private func trim(_ node: SimNode) {
        node.trimAt = now + Self.trimEvery
        let memory = memories[node.reader]
        if settings.broken == .trimByClock, node.index == 0 {
            let clock = ManualClock.start + now + Self.wrongClock
            memories[node.reader].trim(before: StreamID(milliseconds: UInt64(clock) - TrimPoint.keptMilliseconds))
        } else if let minimum = node.trim.minimum, minimum > memory.oldest {
            memories[node.reader].trim(before: minimum)
        }
    }

    // MARK: Signs of life

    func beat(_ node: SimNode) {
        schedule(500, .beat(node.index, life: node.life))
        let isAnswered = !node.isDeaf && isLinked(node)
        defer { lookAtVersions(node, isAnswered: isAnswered) }
        guard !node.isUnheard, memories[node.writerRoute].isUp else { return node.watch.reset() }
        guard isLinked(node) else { return node.isDeaf ? () : drain(node) }
        memories[node.writer].beat(node.run)
        if node.isDeaf { return node.watch.reset() }
        node.beatAt = now
        for (run, beat) in node.watch.look(memories[node.writer].beats, me: node.run)
        where memories[node.writer].declareDead(run, beat: beat, now: now) {
            wakeReaders(of: node.writer)
        }
        guard node.reader == node.writer else { return }
        for run in node.absent.sorted() where memories[node.writer].declareDead(run, beat: nil, now: now) { wakeReaders(of: node.writer) }
        node.absent = []
    }

    // MARK: Faults

    /// All that Redis had is gone, and a while later there is an empty one.
    func loseMemory() { memories[memories.count - 1].isUp = false }

    func redisBack() {
        begin(SimMemory(ahead: clock))
        for node in nodes where node.isUp {
            (node.writerRoute, node.readerRoute) = (memories.count - 1, memories.count - 1)
            catchUp(node)
        }
    }

    /// A replica takes over, which lacks the newest entries. The nodes find it one after the other. Until then each works on with the
    /// former one.
    func failOver(within milliseconds: Int64) {
        let former = memories[memories.count - 1]
        let ahead = clock
        begin(
            settings.broken == .epochIgnored
                ? former.replica(ahead: ahead, lag: between(0, 2000), now: now) : SimMemory(ahead: ahead))
        for node in nodes where node.isUp {
            for writes in [true, false] {
                let work = RedisWork.moves(writes: writes, to: memories.count - 1)
                schedule(between(0, milliseconds), .redis(work, node.index, life: node.life))
            }
        }
    }

    /// Clocks of servers differ.
    private var clock: Int64 { chance(50) ? between(-60_000, 60_000) : 0 }

    private func begin(_ memory: SimMemory) {
        // Nobody comes back to the ones before the oldest that is reached.
        let oldest = nodes.filter(\.isUp).flatMap { [$0.writerRoute, $0.readerRoute] }.min() ?? memories.count
        for former in memories.indices.prefix(oldest) { memories[former].forget() }
        memories.append(memory)
    }

    func catchUp(_ node: SimNode) {
        schedule(1, .append(node.index, life: node.life))
        schedule(2, .read(node.index, life: node.life))
    }
}
