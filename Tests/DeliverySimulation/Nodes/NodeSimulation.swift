import HubCore
import HubDefinitions
import HubDelivery
import HubTesting

/// Several nodes with the delivery books that ship, between a Redis, a PostgreSQL, a network and people that go wrong.
///
/// Simulated: one stream with lost memory and failover, leases, fences, aborted and unknown commits, outages, restarts, upgrades, and
/// clocks that are set. Nodes are killed, stopped, slow or cut off. Every person has one phone, whose app is on the screen or in the
/// background. Every event has the policy `notify`, and every other channel replays. Roles, changes of definitions, limits of pushes and
/// members in Redis are not simulated here.
package final class NodeSimulation {
    enum Action {
        case publish
        case asked(Int)
        case late(Int, node: Int, life: Int)
        case rowStored(Int, node: Int, life: Int)
        case turn(Int, life: Int)
        case wake(Int, life: Int)
        case committed(Int, life: Int)
        case plan(Int, life: Int)
        case planned(Int, life: Int)
        case append(Int, life: Int)
        case read(Int, life: Int)
        case beat(Int, life: Int)
        case look(Int, life: Int, step: Int)
        case looked(Int, life: Int, step: Int)
        case carried(Int, life: Int, step: Int, isNudged: Bool)
        case lowered(Int, life: Int, until: Int64)
        case leaves(Int, life: Int, NodeOperation.Stage, until: Int64)
        case sendsAway(Int, life: Int)
        case roll
        case clockRight(Int)
        case postgresBack(isRestarted: Bool)
        case postgresFound(Int, life: Int)
        case poll(Int, life: Int)
        case greet(Int, life: Int)
        case word(NodeWord, Int, life: Int)
        case readOpen(Int, life: Int, round: UInt64)
        case up(Int, cursor: UInt64?, read: Int)
        case lost(Int)
        case frame(Int, event: Int, isReplay: Bool)
        case says(Int, AppState)
        case missed(Int, life: Int, Arrival)
        case ping(Int, cursor: UInt64)
        case person(Int, step: Int)
        case connect(Int, step: Int)
        case engines
        case gateway(Int, process: Int64, life: Int)
        case outcome(Int, Int, life: Int, tries: Int)
        case expired(Int)
        case fault
        case boot(Int)
        case resume(Int)
        case heal(Int)
        case redisBack
        case redis(RedisWork, Int, life: Int)
        case slow(Int, life: Int, until: Int64, most: Int64)
    }

    let settings: NodeSettings
    var random: SeededRandom
    var now: Int64 = 0
    var queue = ActionQueue<Action>()
    package internal(set) var report: SimulationReport

    // The world.
    private static let kinds = [SimKind(scope: .participant), SimKind(scope: .participant, replays: true)]
    let definitions: DefinitionSet
    var channels: [(name: String, partition: Int32, people: [Int])] = []
    var people: [NodePerson] = []
    var personIndex: [String: Int] = [:]
    var channelIndex: [String: Int] = [:]
    var sockets: [NodeSocket] = []
    var nodes: [SimNode] = []
    var lastRun: UInt64 = 0
    var publishedPairs = 0
    var isEnding = false
    /// Faults, with the time from which all nodes are well again.
    var faults: [(from: Int64, until: Int64)] = []

    // Redis.
    /// From the first one on; the last one is found by nodes that begin. Indexes name epochs.
    var memories = [SimMemory(ahead: 0)]

    // Operations: clocks of the nodes, ahead of the true time, and builds.
    var clocks: [Int64]
    var builds: [MessageVersions]
    var roll: NodeRoll?
    /// When nodes began to stop, or gave partitions back.
    var handovers: [Int64] = []
    /// When nodes that stop sent people away.
    var farewells: [Int64] = []
    /// When nodes lost partitions by no order: their leases were over, or others had taken them.
    var lapses: [Int64] = []
    /// When PostgreSQL was away from all nodes, or from one.
    var outages: [(from: Int64, until: Int64)] = []
    /// Versions that a run reads, and in which it writes from a number on.
    var versionsRead: [UInt64: MessageVersions] = [:]
    var versionsWritten: [UInt64: [(from: UInt64, version: UInt8)]] = [:]

    // PostgreSQL.
    var postgres = SimPostgres()
    var publishes: [NodePublish] = []
    var events: [NodeEvent] = []
    var eventIndex: [String: Int] = [:]
    var openEvents: Set<Int> = []
    /// Stored events in the order of their commits, by channel.
    var told: [Int: [Int]] = [:]
    var waitingRows: Set<Int> = []
    var pushes: [NodePush] = []
    var openPushes: Set<Int> = []
    var pushIndex: [RowKey: Int] = [:]

    package init(_ settings: NodeSettings) {
        self.settings = settings
        random = SeededRandom(state: settings.seed)
        report = SimulationReport(seed: settings.seed)
        clocks = Array(repeating: 0, count: settings.nodes)
        builds = Array(repeating: Self.firstBuild, count: settings.nodes)
        definitions = SimKind.definitions(Set(Self.kinds), isReversed: false)
        for number in 0..<settings.channels {
            let name = Self.kinds[number % 2].channel("\(number)")
            let first = people.count
            for place in 0..<settings.participantsPerChannel {
                let user = "u\(people.count)"
                let device = Device(
                    app: "1", user: user, id: "d\(people.count)", platform: .android, provider: .fcm, token: "t\(people.count)",
                    environment: .production, registeredAt: ManualClock.start)
                personIndex[user] = people.count
                people.append(NodePerson(name: user, channel: number, place: place, device: device))
            }
            channelIndex[name] = number
            channels.append((name, Partition.of(MemberPlace(app: "1", channel: name)), Array(first..<people.count)))
        }
        for index in 0..<settings.nodes {
            nodes.append(SimNode(index: index, process: 1, versions: builds[index], book: newBook(), channels: settings.channels))
            boot(index)
        }
    }

    func schedule(_ delay: Int64, _ action: Action) { queue.add(now + delay, action) }
    func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }
    func between(_ low: Int64, _ high: Int64) -> Int64 { Int64.random(in: low...high, using: &random) }

    /// Publishes the wanted number of pairs, and lets every event live to its end.
    /// - Parameter stopsAtFirst: ends with the first thing that has to be 0 and is not.
    package func run(stopsAtFirst: Bool = false) -> SimulationReport {
        schedule(0, .engines)
        schedule(5000, .publish)
        for person in people.indices { schedule(between(0, 10_000), .person(person, step: 0)) }
        if settings.faultInterval > 0 { schedule(10_000, .fault) }
        while let (at, action) = queue.removeFirst() {
            now = at
            report.steps += 1
            perform(action)
            if report.violationCount > 100 || stopsAtFirst && !report.isClean { break }
            if isEnding, report.events == judged { break }
        }
        if report.violationCount == 0 {
            if !openEvents.isEmpty { violation("\(openEvents.count) events are still open") }
            if !openPushes.isEmpty { violation("\(openPushes.count) pushes are still open") }
            if !waitingRows.isEmpty { violation("\(waitingRows.count) publishes still wait in the store") }
        }
        report.simulatedMilliseconds = now
        return report
    }

    var judged = 0

    func perform(_ action: Action) {
        if let node = place(of: action), nodes[node].isStopped {
            if case .up(let socket, let cursor?, let read) = action, cursor > 0 { lies(sockets[socket], cursor, read) }
            return nodes[node].waiting.append(action)
        }
        switch action {
        case .publish: publish()
        case .asked(let index): ask(index)
        case .late(let index, let node, let life): if lives(node, life) { leaveToStore(index, nodes[node]) }
        case .rowStored(let index, let node, let life): rowStored(index, nodes[node], isAlive: lives(node, life))
        case .turn(let node, let life): if lives(node, life) { turn(nodes[node]) }
        case .wake(let node, let life):
            if lives(node, life), let at = nodes[node].book.wakeAt, at <= now { post(.item(.tick), nodes[node]) }
        case .committed(let node, let life): if lives(node, life) { committed(nodes[node]) }
        case .plan(let node, let life): if lives(node, life) { turnOfPlan(nodes[node]) }
        case .planned(let node, let life): if lives(node, life) { planned(nodes[node]) }
        case .append(let node, let life): if lives(node, life) { append(nodes[node]) }
        case .read(let node, let life): if lives(node, life) { readStream(nodes[node]) }
        case .beat(let node, let life): if lives(node, life) { beat(nodes[node]) }
        case .look(let node, let life, let step): if lives(node, life) { look(nodes[node], step) }
        case .looked(let node, let life, let step): if lives(node, life) { looked(nodes[node], step) }
        case .carried(let node, let life, let step, let isNudged):
            if lives(node, life) { carried(nodes[node], step, isNudged: isNudged) }
        case .lowered(let node, let life, let end): if lives(node, life) { lowered(nodes[node], until: end) }
        case .leaves(let node, let life, let stage, let end): if lives(node, life) { leave(nodes[node], stage, until: end) }
        case .sendsAway(let node, let life): if lives(node, life) { sendAway(nodes[node]) }
        case .roll: rollOn()
        case .clockRight(let place): setClock(place, ahead: 0)
        case .postgresBack(let isRestarted): postgresBack(isRestarted: isRestarted)
        case .postgresFound(let node, let life): if lives(node, life) { nodes[node].owning.isCut = false }
        case .poll(let node, let life): if lives(node, life) { poll(nodes[node]) }
        case .greet(let node, let life): if lives(node, life) { joinAnew(nodes[node]) }
        case .word(let word, let node, let life): if lives(node, life) { post(word, nodes[node]) }
        case .readOpen(let node, let life, let round): if lives(node, life) { readOpen(nodes[node], round) }
        case .up(let socket, let cursor, let read): received(sockets[socket], socket, cursor, read)
        case .lost(let socket): disconnect(socket, mayReturn: true)
        case .frame(let socket, let event, let isReplay): arrived(sockets[socket], event, isReplay: isReplay)
        case .says(let socket, let state): says(socket, state)
        case .missed(let node, let life, let arrival): if lives(node, life) { missed(arrival, nodes[node]) }
        case .ping(let socket, let cursor): pinged(sockets[socket], socket, cursor)
        case .person(let person, let step): if people[person].step == step { live(person) }
        case .connect(let person, let step): if people[person].step == step { connect(person) }
        case .engines: engines()
        case .gateway(let push, let process, let life): answered(push, process, life)
        case .outcome(let push, let node, let life, let tries): if lives(node, life) { stored(push, nodes[node], tries: tries) }
        case .expired(let publish): judge(publishes[publish])
        case .fault: fault()
        case .boot(let node): boot(node)
        case .resume(let node): resume(nodes[node])
        case .heal(let node): heal(nodes[node])
        case .redisBack: redisBack()
        case .redis(let work, let node, let life): if lives(node, life) { self.work(work, nodes[node]) }
        case .slow(let node, let life, let until, let most): if lives(node, life) { slow(nodes[node], until: until, most: most) }
        }
    }

    func lives(_ node: Int, _ life: Int) -> Bool { nodes[node].isUp && nodes[node].life == life }

    /// The node that has to run for the action.
    private func place(of action: Action) -> Int? {
        switch action {
        case .late(_, let node, _), .turn(let node, _), .wake(let node, _), .committed(let node, _), .plan(let node, _),
            .planned(let node, _), .append(let node, _), .read(let node, _), .beat(let node, _), .poll(let node, _),
            .greet(let node, _), .look(let node, _, _), .looked(let node, _, _), .carried(let node, _, _, _), .lowered(let node, _, _),
            .leaves(let node, _, _, _), .sendsAway(let node, _), .outcome(_, let node, _, _), .word(_, let node, _),
            .readOpen(let node, _, _), .missed(let node, _, _), .redis(.tick, let node, _), .redis(.counts, let node, _):
            node
        case .rowStored(_, let node, let life): lives(node, life) ? node : nil
        case .up(let socket, _, _), .lost(let socket), .says(let socket, _): nodes[sockets[socket].node].isUp ? sockets[socket].node : nil
        default: nil
        }
    }
}
