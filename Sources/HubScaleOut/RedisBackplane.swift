package import HubCore
internal import HubCrypto
internal import Synchronization

/// The way between nodes over one or several Redis servers. An app's messages and members are at one of them. Any thread.
///
/// A node that the others declared dead begins anew, as another run without members.
package final class RedisBackplane: Backplane {
    private struct State {
        var node: UInt64 = 0
        var shards: [RedisNode] = []
        var isConnected = false
        var isClosed = false
        var deaths: UInt64 = 0
    }

    /// Time between two tries to begin anew.
    static let retryEvery: Duration = .milliseconds(250)

    private let address: RedisAddress
    private let database: String
    private let versions: MessageVersions
    private let facts: @Sendable () -> [UInt8]
    private let state = Mutex(State())
    private let take: @Sendable (_ shard: Int, _ news: [NodeNews], _ position: StreamID) -> Void
    private let answer: @Sendable ([MemberAnswer]) -> Void
    private let onDeath: @Sendable () -> Void

    /// - Parameters:
    ///   - database: identity of the database that the nodes share; empty: not compared. Nodes of another one are refused under the prefix.
    ///   - versions: versions of messages that the node reads.
    ///   - facts: what the node tells of itself twice a second. Others read it at the first server.
    ///   - take: gets what was read from a server, in order, with the place up to which it goes, on a thread of that server's.
    ///   - answer: gets answers about members, on another thread.
    ///   - onDeath: the other nodes have declared this one dead at some server. Nothing of it is there any more.
    package init(
        _ address: RedisAddress, database: String = "", versions: MessageVersions = .known,
        facts: @escaping @Sendable () -> [UInt8] = { [] },
        take: @escaping @Sendable (_ shard: Int, _ news: [NodeNews], _ position: StreamID) -> Void,
        answer: @escaping @Sendable ([MemberAnswer]) -> Void, onDeath: @escaping @Sendable () -> Void
    ) {
        self.address = address
        self.database = database
        self.versions = versions
        self.facts = facts
        self.take = take
        self.answer = answer
        self.onDeath = onDeath
        begin()
    }

    /// This run of the node, unlike all others.
    package var node: UInt64 { state.withLock { $0.node } }

    /// The node is one of the hub's nodes.
    package var isConnected: Bool { state.withLock { $0.isConnected } }

    /// Why new clients should go to another node; nil: they need not.
    package var refusal: String? {
        let (isConnected, shards) = state.withLock { ($0.isConnected, $0.shards) }
        if !isConnected { return "the other nodes have declared this one dead, and it has not joined them again: see tandem cluster" }
        if shards.contains(where: \.isBlind) {
            return "what this node says has not come back through Redis for 3 s, while another node's has: see tandem cluster"
        }
        return nil
    }

    /// Whether the node is one of the hub's nodes, and its messages come back to it from every server.
    package var hears: Bool {
        let (isConnected, shards) = state.withLock { ($0.isConnected, $0.shards) }
        return isConnected && shards.allSatisfy(\.hears)
    }

    /// Facts that all nodes that beat tell of themselves, by node.
    /// - Throws: why Redis does not answer.
    package func records() async throws(RedisFailure) -> [NodeRecord] { try await shards[0].records() }

    /// Things that nodes leave for each other beside the stream, at the first server.
    package var board: NodeBoard { shards[0].board }

    /// Whether there is something on the board, as of the last beat, half a second ago at the most.
    package var hasBoard: Bool { shards[0].hasBoard }

    /// Counters since the node joined, for metrics.
    package var figures: BackplaneFigures {
        let state = state.withLock { $0 }
        return BackplaneFigures(
            isConnected: state.isConnected, deaths: state.deaths, others: living.count - 1, messageVersion: messageVersion,
            servers: state.shards.enumerated().map { shard, node in
                BackplaneFigures.Server(name: address.name(of: shard), node: node.figures, stream: node.events.figures)
            })
    }

    private var shards: [RedisNode] { state.withLock { $0.shards } }

    /// The former run's wishes about members go over to the new one: clients may have come while there was none.
    private func begin() {
        let former = shards
        let node = SecureRandom.bytes(8).reduce(0) { $0 << 8 | UInt64($1) }
        var shards: [RedisNode] = []
        for shard in 0..<address.shardCount {
            shards.append(
                RedisNode(
                    RedisLocator(address, shard: shard), prefix: address.prefix, database: database, node: node,
                    versions: versions, former: former.isEmpty ? nil : former[shard],
                    facts: { [facts] in shard == 0 ? facts() : [] },
                    take: { [take] news, position in take(shard, news, position) }, answer: answer,
                    onDeath: { [weak self] in self?.died(node) }))
        }
        state.withLock { [shards] state in (state.node, state.shards) = (node, shards) }
        // Questions that follow have to go to the new run, which asks Redis none about members before it reads.
        if !former.isEmpty { for shard in shards.indices { take(shard, [.newRun], .zero) } }
    }

    private func died(_ node: UInt64) {
        let isFirst = state.withLock { state in
            guard state.node == node, state.isConnected else { return false }
            state.isConnected = false
            state.deaths += 1
            return true
        }
        if isFirst { onDeath() }
    }

    /// Connects to every server and beats for the first time.
    /// - Throws: why a server cannot be the backplane, or does not answer.
    package func start() async throws(RedisFailure) {
        for shard in shards { try await shard.start() }
        state.withLock { $0.isConnected = true }
    }

    /// Beats and keeps up until `close`. Call once, after `start`.
    package func run() async {
        while true {
            await withTaskGroup(of: Void.self) { group in
                for shard in shards { group.addTask { await shard.run() } }
                // A node that is dead at one server is dead.
                await group.next()
                for shard in shards { await shard.close() }
            }
            while true {
                if state.withLock({ $0.isClosed }) { return }
                begin()
                do throws(RedisFailure) {
                    try await start()
                    break
                } catch {
                    for shard in shards { await shard.close() }
                }
                do { try await Task.sleep(for: Self.retryEvery) } catch { return }
            }
        }
    }

    /// Tells the others that this run is over, and ends all connections. Its members linger until 4.5 seconds after its last beat. In the
    /// first seconds of a memory after a lost one, waits until Redis knows who has left meanwhile.
    package func close() async {
        while state.withLock({ $0.isConnected }), !shards.allSatisfy(\.members.areEndsTold) {
            do { try await Task.sleep(for: .milliseconds(50)) } catch { break }
        }
        state.withLock { ($0.isClosed, $0.isConnected) = (true, false) }
        for shard in shards { await shard.close() }
    }

    // MARK: For the engines

    package func shard(of app: String) -> Int { Int(Partition.stableHash(app) % UInt64(address.shardCount)) }

    package var messageBytesMax: Int { EventStream.messageBytesMax }

    package var messageVersion: UInt8 { shards.reduce(versions.highest) { min($0, $1.messageVersion) } }

    package var living: Set<UInt64> {
        let (node, shards) = state.withLock { ($0.node, $0.shards) }
        return shards.reduce([node]) { $0.union($1.living) }
    }

    package func giveUp(_ nodes: Set<UInt64>) { shards[0].giveUp(nodes) }

    package func send(_ message: [UInt8], app: String, isKept: Bool, _ done: @escaping @Sendable (Bool) -> Void) {
        shards[shard(of: app)].events.send(message, isKept: isKept) { result in
            if case .success = result { done(true) } else { done(false) }
        }
    }

    package func join(_ place: MemberPlace, user: String, info: [UInt8]?, membersMax: Int, ticket: UInt64) {
        members(of: place).join(place, user: user, info: info, membersMax: membersMax, ticket: ticket)
    }

    package func known(_ place: MemberPlace, user: String) { members(of: place).known(place, user: user) }

    package func missed(_ place: MemberPlace, user: String) { members(of: place).missed(place, user: user) }

    package func leave(_ place: MemberPlace, user: String, lingerMilliseconds: Int, lingersAlways: Bool) {
        members(of: place).leave(place, user: user, lingerMilliseconds: lingerMilliseconds, lingersAlways: lingersAlways)
    }

    package func setSubscribers(_ place: MemberPlace, _ count: Int, tells: SubscriberNews) {
        members(of: place).setSubscribers(place, count, tells: tells)
    }

    package func list(_ place: MemberPlace, ticket: UInt64) { members(of: place).list(place, ticket: ticket) }

    package func online(_ users: [String], in place: MemberPlace, ticket: UInt64) {
        members(of: place).online(users, in: place, ticket: ticket)
    }

    package func flush() { for shard in shards { shard.members.flush() } }

    package func admit(app: String, limit: Int, _ done: @escaping @Sendable (Bool?) -> Void) {
        shards[shard(of: app)].quotas.admit(app: app, limit: limit, done)
    }

    package func count(app: String) { shards[shard(of: app)].quotas.count(app: app) }

    package func release(app: String) { shards[shard(of: app)].quotas.release(app: app) }

    package func channels(app: String, prefix: String, countsUsers: Bool) async -> [ChannelCounts]? {
        try? await shards[shard(of: app)].queries.channels(app: app, prefix: prefix, countsUsers: countsUsers)
    }

    package func channels(_ places: [MemberPlace]) async -> [ChannelCounts]? {
        guard let app = places.first?.app else { return [] }
        assert(places.allSatisfy { $0.app == app }, "a question about the channels of several apps")
        return try? await shards[shard(of: app)].queries.channels(places)
    }

    package func users(_ place: MemberPlace) async -> [String]? { try? await shards[shard(of: place.app)].queries.users(place) }

    package func lastMessage(app: String) async -> StreamID? { try? await shards[shard(of: app)].queries.lastMessage() }

    package func members(_ place: MemberPlace) async -> [String: [UInt64]]? {
        try? await shards[shard(of: place.app)].queries.members(place)
    }

    package func connections(app: String) async -> Int? { try? await shards[shard(of: app)].queries.connections(app: app) }

    private func members(of place: MemberPlace) -> SharedMembers { shards[shard(of: place.app)].members }
}

/// Counters of a node's part in a hub of several.
package struct BackplaneFigures: Sendable, Equatable {
    /// Counters of one Redis server.
    package struct Server: Sendable, Equatable {
        /// Host and port.
        package var name: String
        package var node: NodeFigures
        package var stream: StreamFigures

        package init(name: String, node: NodeFigures, stream: StreamFigures) {
            self.name = name
            self.node = node
            self.stream = stream
        }
    }

    /// Whether the node is one of the hub's nodes.
    package var isConnected: Bool
    /// Times that the others have declared this node dead.
    package var deaths: UInt64
    /// Other nodes whose beats are there.
    package var others: Int
    /// Version in which this node writes its messages.
    package var messageVersion: UInt8
    package var servers: [Server]

    package init(isConnected: Bool, deaths: UInt64, others: Int, messageVersion: UInt8, servers: [Server]) {
        self.isConnected = isConnected
        self.deaths = deaths
        self.others = others
        self.messageVersion = messageVersion
        self.servers = servers
    }
}
