package import HubCore
internal import Synchronization

/// This node at one Redis server: its messages, its members, and its sign of life among the other nodes. Any thread.
package final class RedisNode: Sendable {
    /// Time between two beats.
    static let beatEvery: Duration = .milliseconds(500)
    /// Milliseconds from a dead node's last beat until its members are told removed, and further ones in large channels.
    static let removedAfter = 4_500
    static let removedLater = 3_000
    /// Members or channels that one call removes.
    static let pieceMax = 1_000

    private struct State {
        var watch = NodeWatch()
        var isDeclaredDead = false
        var isClosed = false
        var lingering = 0
        var figures = NodeFigures()
    }

    /// Distinguishes this run of the node from all others.
    package let node: UInt64
    package let events: EventStream
    package let members: SharedMembers
    let quotas: ConnectionQuotas
    let queries: MemberQueries
    private let asker: RedisLink<NodeGreeting>
    private let writer: RedisLink<NodeGreeting>
    private let state = Mutex(State())
    private let database: String
    private let onDeath: @Sendable () -> Void

    /// - Parameters:
    ///   - database: identity of the database that the nodes share; empty: not compared.
    ///   - take: gets what was read, in order, with the place up to which it goes, on the stream's own thread.
    ///   - answer: gets answers about members, on another thread.
    ///   - onDeath: the other nodes have declared this one dead. Nothing of it is in Redis any more.
    package init(
        _ locator: RedisLocator, prefix: String, database: String = "", node: UInt64,
        take: @escaping @Sendable (_ news: [NodeNews], _ position: StreamID) -> Void,
        answer: @escaping @Sendable ([MemberAnswer]) -> Void, onDeath: @escaping @Sendable () -> Void
    ) {
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
        let members = SharedMembers(writer, answer: answer)
        let quotas = ConnectionQuotas(writer)
        self.asker = asker
        self.quotas = quotas
        queries = MemberQueries(asker)
        self.writer = writer
        self.members = members
        self.node = node
        self.database = database
        self.onDeath = onDeath
        events = EventStream(locator, prefix: prefix, database: database, node: node, writer: writer) { news, position in
            if news.contains(.newEpoch) {
                members.restart()
                quotas.restart()
                asker.renew()
            }
            take(news, position)
        }
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

    /// The other nodes whose beats are there.
    package var living: [UInt64] { state.withLock { $0.watch.living } }

    /// Connects and beats for the first time.
    /// - Throws: why Redis cannot be the backplane, or does not answer.
    package func start() async throws(RedisFailure) {
        try await events.start()
        try await beat()
    }

    /// Beats, looks at the other nodes, and tells of members whose time has come, until `close` or until this node is declared dead.
    package func run() async {
        var beatAt = ContinuousClock.now + Self.beatEvery
        while !state.withLock({ $0.isClosed || $0.isDeclaredDead }) {
            do { try await Task.sleep(for: Self.beatEvery / 2) } catch { return }
            events.tick()
            members.flush()
            quotas.tick()
            do throws(RedisFailure) {
                if ContinuousClock.now >= beatAt {
                    beatAt = max(beatAt + Self.beatEvery, .now)
                    try await beat()
                }
                if state.withLock({ $0.lingering }) > 0 { try await settle() }
            } catch {
                missed(error)
            }
        }
    }

    /// Ends all connections. Members of this node linger until the other nodes declare it dead.
    package func close() async {
        state.withLock { $0.isClosed = true }
        await events.close()
        await writer.close()
        await asker.close()
    }

    private func call(_ script: RedisScript, _ words: [String] = []) async throws(RedisFailure) -> RedisReply {
        try await writer.run { greeting in
            let keys = [
                greeting.keys.epochKey, greeting.keys.nodes, greeting.keys.base, greeting.keys.events, greeting.keys.databaseKey,
            ]
            return [script.call(keys: keys, greeting.credentials + words.map { Array($0.utf8) })]
        }[0]
    }

    private func beat() async throws(RedisFailure) {
        let began = ContinuousClock.now
        let reply = try await call(MemberScripts.beat, [database])
        let isLate = ContinuousClock.now - began > .seconds(1)
        guard let parts = reply.array, parts.count == 3, let words = parts[0].array, let sweeping = parts[2].array else {
            throw .notRedis("a beat answers in another shape")
        }
        var beats: [UInt64: Int64] = [:]
        for place in stride(from: 0, to: words.count - 1, by: 2) {
            if let node = words[place].text.flatMap(UInt64.init), let beat = words[place + 1].integer { beats[node] = beat }
        }
        let dead = state.withLock { state in
            state.figures.beats += 1
            state.lingering = Int(clamping: parts[1].integer ?? 0)
            if isLate { state.watch.reset() }
            return state.watch.look(beats, me: node)
        }
        var unswept = sweeping.compactMap { $0.text.flatMap(UInt64.init) }
        for (other, beat) in dead {
            if try await call(MemberScripts.declareDead, ["\(other)", "\(beat)"]).integer == 1 {
                state.withLock { $0.figures.declaredDead += 1 }
                unswept.append(other)
            }
        }
        for other in unswept {
            let words = ["\(other)", "\(Self.pieceMax)", "\(Self.removedAfter)", "\(Self.removedLater)"]
            while try await call(MemberScripts.sweep, words).integer == 1 { state.withLock { $0.lingering = max($0.lingering, 1) } }
        }
    }

    private func settle() async throws(RedisFailure) {
        while let count = try await call(MemberScripts.settle, ["\(Self.pieceMax)"]).integer, count == Self.pieceMax {}
    }

    private func missed(_ failure: RedisFailure) {
        let isDead = state.withLock { state in
            state.watch.reset()
            state.figures.missedBeats += 1
            guard case .refused(ScriptRefusal.dead, _) = failure, !state.isDeclaredDead else { return false }
            state.isDeclaredDead = true
            return true
        }
        if isDead { onDeath() }
    }
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
}
