internal import Dispatch
package import HubCore
internal import Synchronization

/// This node at one Redis server: its messages, its members, and its sign of life among the other nodes. Any thread.
package final class RedisNode: Sendable {
    /// Time between two beats.
    static let beatEvery: Duration = .milliseconds(500)
    /// For how long after a beat was sent its node hands on what it reads. The others declare it dead later than that.
    static let actsFor: Duration = .seconds(3)
    /// Time without a message of its own that comes back, after which a node counts as blind.
    static let blindAfter: Duration = .seconds(3)
    /// Time in which the others lower the version in which they write, for a node of an older build.
    static let loweredMax: Duration = .seconds(5)

    /// Nodes that have not come to a memory.
    private struct Absent {
        let epoch: String
        var nodes: Set<UInt64>
    }

    private struct State {
        var watch = NodeWatch()
        var version: WrittenVersion
        var isDeclaredDead = false
        var isClosed = false
        var lingering = 0
        var figures = NodeFigures()
        /// When the last beat was sent that Redis has answered.
        var beatAt: ContinuousClock.Instant?
        /// Whether another node has seen its probe lately, as of the last beat; false once a beat fails.
        var othersSee = false
        /// Whether there was something on the board at the last beat; false once a beat fails.
        var hasBoard = false
    }

    /// A lock that holds a function itself wraps it once more at each access, and a call walks through all wraps.
    private struct Certainty {
        /// Waits until the node is known to live, or to be dead; nil: it has not started yet.
        var wait: (@Sendable () -> Bool)?
        /// Ends this run: a message is lost that the others go by.
        var end: (@Sendable () -> Void)?
    }

    /// Distinguishes this run of the node from all others.
    package let node: UInt64
    package let events: EventStream
    package let members: SharedMembers
    let quotas: ConnectionQuotas
    let queries: MemberQueries
    let board: NodeBoard
    private let asker: RedisLink<NodeGreeting>
    private let writer: RedisLink<NodeGreeting>
    private let state: Mutex<State>
    private let prefix: String
    private let database: String
    private let versions: MessageVersions
    private let facts: @Sendable () -> [UInt8]
    private let started = ContinuousClock.now
    private let onDeath: @Sendable () -> Void
    /// Nodes that are declared dead with the next beat.
    private let absent: Guarded<Absent?>
    private let certainty: Guarded<Certainty>

    /// - Parameters:
    ///   - database: identity of the database that the nodes share; empty: not compared.
    ///   - versions: versions of messages that the node reads.
    ///   - facts: what the node tells of itself with each beat; empty: nothing.
    ///   - former: the run before this one, which is over.
    ///   - take: gets what was read, in order, with the place up to which it goes, on the stream's own thread.
    ///   - answer: gets answers about members, on another thread.
    ///   - onDeath: the other nodes have declared this one dead. Nothing of it is in Redis any more.
    package init(
        _ locator: RedisLocator, prefix: String, database: String = "", node: UInt64, versions: MessageVersions = .known,
        former: RedisNode? = nil, facts: @escaping @Sendable () -> [UInt8] = { [] },
        take: @escaping @Sendable (_ news: [NodeNews], _ position: StreamID) -> Void,
        answer: @escaping @Sendable ([MemberAnswer]) -> Void, onDeath: @escaping @Sendable () -> Void
    ) {
        state = Mutex(State(version: WrittenVersion(versions)))
        self.versions = versions
        self.prefix = prefix
        let writer = RedisLink(
            name: "write",
            locate: { deadline throws(RedisFailure) in try locator.locate(deadline) },
            greet: { greeter throws(RedisFailure) in
                try NodeGreeting.greet(greeter, prefix: prefix, database: database, node: node, writes: true)
            })
        let asker = RedisLink(
            name: "ask",
            locate: { deadline throws(RedisFailure) in try locator.locate(deadline) },
            greet: { greeter throws(RedisFailure) in
                try NodeGreeting.greet(greeter, prefix: prefix, database: database, node: node, writes: false)
            })
        let members = SharedMembers(writer, former: former?.members, answer: answer)
        let quotas = ConnectionQuotas(writer)
        self.asker = asker
        self.quotas = quotas
        queries = MemberQueries(asker)
        board = NodeBoard(asker)
        self.writer = writer
        self.members = members
        self.node = node
        self.database = database
        self.facts = facts
        self.onDeath = onDeath
        let absent = Guarded<Absent?>(nil)
        self.absent = absent
        let certainty = Guarded(Certainty())
        self.certainty = certainty
        events = EventStream(
            locator, prefix: prefix, database: database, node: node, writer: writer, overflowed: { certainty.withLock { $0 }.end?() }
        ) { news, position in
            // A node that has stood still may be dead for the others: its clients were told of all this by another way.
            guard certainty.withLock({ $0 }).wait?() ?? true else { return }
            // The homes forget first. An answer to what is asked again would be forgotten with the rest.
            take(news, position)
            for case .announcement(let announcement) in news {
                if case .removed(let user) = announcement.event, let place = announcement.place { members.removed(user, from: place) }
            }
            for case .newEpoch(let epoch) in news {
                absent.withLock { $0 = nil }
                members.restart(in: epoch)
                quotas.restart()
                asker.renew()
            }
        }
        certainty.withLock { $0.end = { [weak self] in self?.end() } }
    }

    /// Counters, for metrics.
    package var figures: NodeFigures {
        state.withLock { state in
            var figures = state.figures
            figures.connections = writer.connectionCount
            figures.others = state.watch.living.count
            return figures
        }
    }

    /// Declares nodes dead that have no beat in the memory that is read now, with one of the next beats. They have not come to it in time,
    /// and the others know nothing of them any more. A node that comes later has to join anew, or nobody would read its messages.
    package func giveUp(_ nodes: Set<UInt64>) {
        guard let epoch = events.epoch, !nodes.isEmpty else { return }
        absent.withLock { absent in
            let known = absent?.epoch == epoch ? absent?.nodes ?? [] : []
            absent = Absent(epoch: epoch, nodes: known.union(nodes))
        }
    }

    private func declareAbsent() async throws(RedisFailure) {
        guard let absent = absent.withLock({ $0 }) else { return }
        for other in absent.nodes.sorted() {
            // The connection that writes may not have come to the memory yet.
            let replies = try await writer.run { greeting in
                greeting.keys.epoch == absent.epoch ? [NodeBeat.declareDead(other, beat: nil, greeting)] : []
            }
            guard let reply = replies.first else { return }
            if try reply.value().integer == 1 { state.withLock { $0.figures.declaredDead += 1 } }
            self.absent.withLock { if $0?.epoch == absent.epoch { $0?.nodes.remove(other) } }
        }
    }

    /// The other nodes whose beats are there.
    package var living: [UInt64] { state.withLock { $0.watch.living } }

    /// Version in which this node writes its messages.
    package var messageVersion: UInt8 { state.withLock { $0.version.now } }

    /// Whether nothing that this node says has come back for three seconds, while another node's messages have.
    package var isBlind: Bool { !hears && state.withLock { $0.othersSee } }

    /// Whether something that this node said has come back within three seconds.
    package var hears: Bool { (events.figures.sinceProbe ?? (ContinuousClock.now - started)) < Self.blindAfter }

    /// Whether there is something on the board, as of the last beat.
    package var hasBoard: Bool { state.withLock { $0.hasBoard } }

    /// Facts that all nodes that beat tell of themselves.
    package func records() async throws(RedisFailure) -> [NodeRecord] {
        let replies = try await asker.run { greeting in
            [
                RedisCommand("HGETALL", texts: [greeting.keys.base + "facts"]), RedisCommand("HKEYS", texts: [greeting.keys.beats]),
                RedisCommand("ZRANGE", texts: [greeting.keys.lastBeats, "0", "-1", "WITHSCORES"]), RedisCommand("TIME"),
            ]
        }
        func pairs(_ reply: RedisReply) -> [UInt64: RedisReply] {
            let words = reply.array ?? []
            return stride(from: 0, to: words.count - 1, by: 2).reduce(into: [:]) { pairs, place in
                if let node = words[place].text.flatMap(UInt64.init) { pairs[node] = words[place + 1] }
            }
        }
        let (facts, beats, time) = (pairs(replies[0]), pairs(replies[2]), replies[3].array ?? [])
        guard time.count == 2, let seconds = time[0].integer, let microseconds = time[1].integer, let living = replies[1].array else {
            throw .notRedis("a question about nodes is answered in another shape")
        }
        return living.compactMap { $0.text.flatMap(UInt64.init) }.sorted().map { node in
            let beat = beats[node]?.text.flatMap { Double($0) }.map { seconds * 1_000 + microseconds / 1_000 - Int64($0) }
            return NodeRecord(node: node, facts: facts[node]?.bytes ?? [], sinceBeat: beat)
        }
    }

    /// Connects and beats for the first time. Returns once the others write what this node reads.
    /// - Throws: why Redis cannot be the backplane, or does not answer.
    package func start() async throws(RedisFailure) {
        try await events.start()
        let first: NodeBeat
        do throws(RedisFailure) { first = try await beat() } catch .refused(ScriptRefusal.version, let theirs) {
            throw .unfit(NodeGreeting.otherVersions(theirs, versions, prefix))
        }
        if first.othersRead > versions.highest { try await waitUntilLowered(first) }
        certainty.withLock { $0.wait = { [weak self] in self?.waitForCertainty() ?? false } }
        members.begin(in: events.epoch)
    }

    /// Waits for two more beats of each other node: the answer to the first one said that this node is there. Then for what waited to be
    /// appended. A node that does not move is dead by then.
    private func waitUntilLowered(_ first: NodeBeat) async throws(RedisFailure) {
        let deadline = ContinuousClock.now + Self.loweredMax
        let others = first.beats.filter { $0.key != node }
        var beats = others
        while ContinuousClock.now < deadline, others.contains(where: { other in beats[other.key].map { $0 < other.value + 2 } ?? false }) {
            do { try await Task.sleep(for: Self.beatEvery) } catch { return }
            beats = try await beat().beats
        }
        try? await Task.sleep(for: EventStream.appendMax)
        try await beat()
    }

    /// Waits on the thread that reads until a beat of late has been answered.
    /// - Returns: false: the node is dead or closed.
    private func waitForCertainty() -> Bool {
        while true {
            let (isOver, beatAt) = state.withLock { ($0.isDeclaredDead || $0.isClosed, $0.beatAt) }
            if isOver { return false }
            if let beatAt, ContinuousClock.now < beatAt + Self.actsFor { return true }
            _ = DispatchSemaphore(value: 0).wait(timeout: .now() + .milliseconds(20))
        }
    }

    /// Beats, looks at the other nodes, and tells of members whose time has come, until `close` or until this node is declared dead.
    package func run() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.keepTime() }
            await beatOn()
            group.cancelAll()
        }
    }

    private var isOver: Bool { state.withLock { $0.isClosed || $0.isDeclaredDead } }

    /// Fails what waits for too long. Apart from the beats, which may wait for Redis themselves.
    private func keepTime() async {
        while !isOver {
            do { try await Tick.wait(Self.beatEvery / 2) } catch { return }
            events.tick()
            members.flush()
            quotas.tick()
        }
    }

    private func beatOn() async {
        var beatAt = ContinuousClock.now + Self.beatEvery
        while !isOver {
            do { try await Tick.wait(Self.beatEvery / 2) } catch { return }
            do throws(RedisFailure) {
                if ContinuousClock.now >= beatAt {
                    beatAt = Self.nextBeat(after: beatAt, at: .now)
                    try await beat()
                    try await declareAbsent()
                }
                if state.withLock({ $0.lingering }) > 0 { try await settle() }
            } catch {
                missed(error)
            }
        }
    }

    /// When to beat again. Each beat is a look at the others, who are dead after seven: so a late one moves the next one away.
    /// - Parameter due: when the beat of now was due.
    static func nextBeat(after due: ContinuousClock.Instant, at now: ContinuousClock.Instant) -> ContinuousClock.Instant {
        max(due + beatEvery, now + beatEvery / 2)
    }

    /// Declares this run dead, and ends all connections. Its members linger until 4.5 seconds after its last beat.
    package func close() async {
        let isThere = state.withLock { state in
            defer { state.isClosed = true }
            return !state.isClosed && !state.isDeclaredDead && state.beatAt != nil
        }
        await events.close()
        // Without this word the others wait for the node's beats, and count on it, for three and a half seconds.
        if isThere { _ = try? await call(NodeBeat.end) }
        await writer.close()
        await asker.close()
    }

    private static func milliseconds(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        return seconds * 1_000 + attoseconds / 1_000_000_000_000_000
    }

    private func call(_ command: @escaping @Sendable (NodeGreeting) -> RedisCommand) async throws(RedisFailure) -> RedisReply {
        try await writer.run { greeting in [command(greeting)] }[0]
    }

    @discardableResult
    private func beat() async throws(RedisFailure) -> NodeBeat {
        let began = ContinuousClock.now
        let (database, facts, versions) = (database, facts(), versions)
        let probe = events.figures.sinceProbe.map(Self.milliseconds)
        let reply = try await call {
            NodeBeat.call(
                $0, database: database, facts: facts, sinceProbe: probe, blindAfter: Self.milliseconds(Self.blindAfter), versions: versions)
        }
        let isLate = ContinuousClock.now - began > .seconds(1)
        let beat = try NodeBeat(reply)
        let dead = state.withLock { state in
            state.beatAt = began
            state.figures.beats += 1
            state.lingering = beat.waiting
            state.othersSee = beat.othersSeen > 0
            state.hasBoard = beat.onBoard > 0
            state.version.look(beat.common)
            if isLate { state.watch.reset() }
            return state.watch.look(beat.beats, me: node)
        }
        var unswept = beat.sweeping
        for (other, last) in dead {
            if try await call({ NodeBeat.declareDead(other, beat: last, $0) }).integer == 1 {
                state.withLock { $0.figures.declaredDead += 1 }
                unswept.append(other)
            }
        }
        for other in unswept {
            while try await call({ NodeBeat.sweep(other, $0) }).integer == 1 {
                state.withLock { $0.lingering = max($0.lingering, 1) }
            }
        }
        return beat
    }

    private func settle() async throws(RedisFailure) {
        while let count = try await call(NodeBeat.settle).integer, count == NodeBeat.pieceMax {}
    }

    private func missed(_ failure: RedisFailure) {
        state.withLock { state in
            state.watch.reset()
            state.version.reset()
            state.figures.missedBeats += 1
            state.othersSee = false
            state.hasBoard = false
        }
        if case .refused(ScriptRefusal.dead, _) = failure { end() }
    }

    /// This run is over: the others have declared it dead, or will, because they miss a message that they go by.
    private func end() {
        let isFirst = state.withLock { state in
            defer { state.isDeclaredDead = true }
            return !state.isDeclaredDead
        }
        if isFirst { onDeath() }
    }
}

/// Facts that a node tells the others of itself.
package struct NodeRecord: Sendable, Equatable {
    package let node: UInt64
    /// As the node wrote it; empty: it has told nothing yet.
    package let facts: [UInt8]
    /// Milliseconds since its last beat by Redis' clock; nil: unknown.
    package let sinceBeat: Int64?
}

/// Counters of one node at one Redis since the start.
package struct NodeFigures: Sendable, Equatable {
    package var beats: UInt64 = 0
    package var missedBeats: UInt64 = 0
    /// Nodes that this one declared dead.
    package var declaredDead: UInt64 = 0
    /// Other nodes whose beats are there.
    package var others = 0
    /// Connections made for writing.
    package var connections = 0

    /// All zero.
    package init() {}
}
