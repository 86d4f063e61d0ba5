import Glibc
import HubCore
import HubScaleOut
import HubTesting
import Synchronization
import Testing

/// The way between nodes as the engines use it, over two Redis servers.
@Suite("Backplane", .enabled(if: TestRedis.isWanted), .timeLimit(.minutes(4)))
struct BackplaneTests {
    private func with(_ count: Int, _ body: ([RedisBackplane]) async throws -> Void) async throws {
        let servers = try [TestRedis(), TestRedis()]
        let address = try RedisAddress("redis://:secret@\(servers.map { "127.0.0.1:\($0.port)" }.joined(separator: ","))?prefix=test")
        let nodes = (0..<count).map { _ in RedisBackplane(address, take: { _, _, _ in }, answer: { _ in }, onDeath: {}) }
        for node in nodes { try await node.start() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for node in nodes { group.addTask { await node.run() } }
            try await body(nodes)
            for node in nodes { await node.close() }
        }
    }

    /// Asks for connections of an app, on the nodes in turn, and counts those that are granted.
    private func admit(_ nodes: [RedisBackplane], _ count: Int, app: String, limit: Int) async throws -> [Int] {
        let answers = Mutex<[(node: Int, isGranted: Bool?)]>([])
        for number in 0..<count {
            let node = number % nodes.count
            nodes[node].admit(app: app, limit: limit) { isGranted in answers.withLock { $0.append((node, isGranted)) } }
        }
        try await eventually("all are answered") { answers.withLock(\.count) == count }
        return answers.withLock { answers in nodes.indices.map { node in answers.count { $0.node == node && $0.isGranted == true } } }
    }

    @Test("an app's connections on all nodes together keep its limit, and a place that is free is taken")
    func quotas() async throws {
        try await with(3) { nodes in
            let granted = try await admit(nodes, 30, app: "1", limit: 10)
            #expect(granted.reduce(0, +) == 10)
            #expect(try await admit(nodes, 30, app: "2", limit: 40).reduce(0, +) == 30)
            #expect(try await admit(nodes, 3, app: "1", limit: 10) == [0, 0, 0])
            #expect(await nodes[1].connections(app: "1") == 10)
            let owner = try #require(granted.indices.max { granted[$0] < granted[$1] })
            nodes[owner].release(app: "1")
            #expect(await eventually { await nodes[0].connections(app: "1") == 9 })
            #expect(try await admit(nodes, 6, app: "1", limit: 10).reduce(0, +) == 1)
            nodes[2].count(app: "3")
            #expect(await eventually { await nodes[0].connections(app: "3") == 1 }, "an app without a limit is counted, too")
        }
    }

    @Test("questions are answered from what all nodes have")
    func questions() async throws {
        try await with(2) { nodes in
            let places = (0..<2_500).map { MemberPlace(app: "1", channel: "room-\($0)") }
            for (number, place) in places.enumerated() { nodes[number % 2].setSubscribers(place, 1 + number % 3, tells: []) }
            let presence = MemberPlace(app: "1", channel: "presence-a*")
            nodes[0].setSubscribers(presence, 2, tells: [])
            nodes[0].join(presence, user: "ann", info: nil, membersMax: 10, ticket: 1)
            nodes[1].join(presence, user: "bob", info: nil, membersMax: 10, ticket: 1)
            for node in nodes { node.flush() }
            #expect(await eventually { await nodes[0].channels(app: "1", prefix: "room-", countsUsers: false)?.count == places.count })
            #expect(await eventually { await nodes[0].users(presence)?.count == 2 })
            let some = try #require(await nodes[1].channels(app: "1", prefix: "room-24", countsUsers: false))
            #expect(some.count == 111 && some.allSatisfy { $0.channel.hasPrefix("room-24") })
            #expect(
                await nodes[1].channels(app: "1", prefix: "presence-a*", countsUsers: true)
                    == [ChannelCounts(channel: "presence-a*", subscribers: 2, users: 2)])
            #expect(await nodes[1].channels(app: "1", prefix: "*", countsUsers: true) == [])
            #expect(
                await nodes[0].channels([places[1], MemberPlace(app: "1", channel: "nobody")])
                    == [ChannelCounts(channel: "room-1", subscribers: 2, users: 0)])
            #expect(await nodes[0].users(presence).map(Set.init) == ["ann", "bob"])
            #expect(await nodes[0].members(presence) == ["ann": [nodes[0].node], "bob": [nodes[1].node]])
        }
    }

    @Test("of a lost memory is told before the answers to what is asked again")
    func lostMemory() async throws {
        let redis = try TestRedis()
        let told = Mutex<[String]>([])
        let node = RedisBackplane(
            try redis.address(),
            take: { _, news, _ in
                guard news.contains(where: { if case .newEpoch = $0 { true } else { false } }) else { return }
                // Long enough for an answer that does not wait.
                usleep(300_000)
                told.withLock { $0.append("lost memory") }
            },
            answer: { answers in
                let count = answers.count { if case .admitted = $0 { true } else { false } }
                if count > 0 { told.withLock { $0.append("admitted") } }
            }, onDeath: {})
        try await node.start()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await node.run() }
            node.join(MemberPlace(app: "1", channel: "presence-a"), user: "ann", info: nil, membersMax: 10, ticket: 1)
            node.flush()
            #expect(await eventually { told.withLock { $0 == ["admitted"] } })
            redis.end()
            try redis.start()
            #expect(await eventually { told.withLock { $0.contains("lost memory") && $0.last == "admitted" } })
            await node.close()
        }
    }
}
