import Glibc
import HubCore
import HubScaleOut
import HubTesting
import Testing

/// Nodes know of themselves and of each other, on real servers.
@Suite("The health of nodes", .enabled(if: TestRedis.isWanted), .timeLimit(.minutes(4)))
struct NodeHealthTests {
    private func node(
        _ redis: TestRedis, _ number: UInt64, facts: String = "", take: @escaping @Sendable ([NodeNews]) -> Void = { _ in }
    ) throws -> RedisNode {
        RedisNode(
            try redis.locator(), prefix: "test", node: number, facts: { Array(facts.utf8) }, take: { news, _ in take(news) },
            answer: { _ in }, onDeath: {})
    }

    private func run(_ nodes: [RedisNode], starts: Bool = true, _ body: () async throws -> Void) async throws {
        if starts { for node in nodes { try await node.start() } }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for node in nodes { group.addTask { await node.run() } }
            try await body()
            group.cancelAll()
        }
        for node in nodes { await node.close() }
    }

    @Test("a node's probe comes back to it each second, and is news to nobody")
    func probes() async throws {
        let redis = try TestRedis()
        let news = Guarded<[NodeNews]>([])
        let nodes = try [node(redis, 1), node(redis, 2) { batch in news.withLock { $0 += batch } }]
        try await run(nodes) {
            for node in nodes {
                try await eventually("a probe is back") { node.events.figures.probe != nil }
                let read = node.events.figures.read
                try await eventually("more are read") { node.events.figures.read > read + 4 }
                #expect(!node.isBlind && node.events.figures.gaps == 0)
            }
            #expect(news.withLock { $0 } == [])
        }
    }

    @Test("a node that reads nothing is blind once another one reads, and no node is while Redis is away from all")
    func blind() async throws {
        let redis = try TestRedis()
        let isHeld = Guarded(false)
        let stuck = try node(redis, 1) { _ in while isHeld.withLock({ $0 }) { usleep(10_000) } }
        let other = try node(redis, 2)
        try await run([stuck, other]) {
            try await eventually("both read") { [stuck, other].allSatisfy { $0.events.figures.probe != nil } }
            isHeld.withLock { $0 = true }
            try await eventually("the one that reads nothing is blind") { stuck.isBlind }
            #expect(!other.isBlind)
            isHeld.withLock { $0 = false }
            try await eventually("it sees again") { !stuck.isBlind }
            redis.freeze()
            try await eventually("no probe comes back to anybody") { other.events.figures.sinceProbe ?? .zero > .seconds(4) }
            #expect(!stuck.isBlind && !other.isBlind, "nobody sees Redis, so nobody is worse than the others")
            redis.thaw()
        }
    }

    @Test("a node reads what all nodes tell of themselves, but for those that were declared dead")
    func records() async throws {
        let redis = try TestRedis()
        let nodes = try [node(redis, 1, facts: "one"), node(redis, 2, facts: "two"), node(redis, 3, facts: "three")]
        for node in nodes { try await node.start() }
        let all = try await nodes[0].records()
        #expect(all.map { String(decoding: $0.facts, as: UTF8.self) } == ["one", "two", "three"] && all.map(\.node) == [1, 2, 3])
        #expect(all.allSatisfy { $0.sinceBeat.map { $0 >= 0 } == true }, "\(all)")
        // The third one has beaten once, and stands still.
        try await run([nodes[0], nodes[1]], starts: false) {
            #expect(await eventually { (try? await nodes[1].records().map(\.node)) == [1, 2] })
        }
        await nodes[2].close()
    }

    @Test("a node that has not come to a memory is declared dead there, and told so when it comes; one that has beaten lives on")
    func absent() async throws {
        let redis = try TestRedis()
        let told = Guarded<Set<UInt64>>([])
        let nodes = try [
            node(redis, 1) { news in
                for case .announcement(let word) in news { if case .dead(let node) = word.event { told.withLock { _ = $0.insert(node) } } }
            }, node(redis, 2),
        ]
        let late = RedisNode(
            try redis.locator(), prefix: "test", node: 3, take: { _, _ in }, answer: { _ in }, onDeath: {})
        try await run(nodes) {
            nodes[0].giveUp([2, 3])
            try await eventually("the absent one is declared dead") { told.withLock { $0 } == [3] }
            await #expect(throws: RedisFailure.self) { try await late.start() }
            let beats = nodes[1].figures.beats
            try await eventually("the other one beats on") { nodes[1].figures.beats > beats + 2 }
            #expect(told.withLock { $0 } == [3])
        }
        await late.close()
    }

    @Test("a node that stops says so as its last word, once, and the others need not miss its beats")
    func stops() async throws {
        let redis = try TestRedis()
        let told = Guarded<[UInt64]>([])
        let staying = try node(redis, 1) { news in
            for case .announcement(let word) in news { if case .dead(let node) = word.event { told.withLock { $0.append(node) } } }
        }
        let leaving = try node(redis, 2)
        try await run([staying]) {
            try await leaving.start()
            let running = Task { await leaving.run() }
            let beats = leaving.figures.beats
            try await eventually("it beats") { leaving.figures.beats > beats + 1 }
            await leaving.close()
            await leaving.close()
            try await eventually("it is told") { told.withLock { $0 } == [2] }
            #expect(await eventually { (try? await staying.records().map(\.node)) == [1] })
            let seen = staying.figures.beats
            try await eventually("more beats than a dead node is given") { staying.figures.beats > seen + UInt64(NodeWatch.looksMax) + 1 }
            #expect(staying.figures.declaredDead == 0 && told.withLock { $0 } == [2])
            await running.value
        }
    }

    @Test("a hub that the others declared dead says so, until it has joined them again as another run")
    func refusal() async throws {
        let redis = try TestRedis()
        let refusals = Guarded<[String?]>([])
        let hub = Guarded<RedisBackplane?>(nil)
        let standing = RedisBackplane(try redis.address(), take: { _, _, _ in }, answer: { _ in }) {
            refusals.withLock { $0.append(hub.withLock { $0 }?.refusal) }
        }
        hub.withLock { $0 = standing }
        try await standing.start()
        let first = standing.node
        #expect(standing.refusal == nil)
        let other = try node(redis, 2)
        try await run([other]) {
            try await eventually("it is declared dead") { other.figures.declaredDead == 1 }
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await standing.run() }
                try await eventually("it learns of it") { !refusals.withLock { $0 }.isEmpty }
                try await eventually("it has joined again") { standing.refusal == nil && standing.figures.isConnected }
                #expect(refusals.withLock { $0 }.first??.contains("declared this one dead") == true)
                #expect(standing.node != first && standing.figures.deaths == 1)
                await standing.close()
            }
        }
        hub.withLock { $0 = nil }
    }
}
