import HubCore
import HubScaleOut
import Synchronization
import Testing

/// A node of the tests: what it read, in order.
private final class Node: Sendable {
    let redis: RedisNode
    var stream: EventStream { redis.events }
    private let news: Guarded<[NodeNews]>

    init(_ locator: RedisLocator, _ node: UInt64) {
        let news = Guarded<[NodeNews]>([])
        self.news = news
        redis = RedisNode(
            locator, prefix: "test", node: node, take: { batch, _ in news.withLock { $0 += batch } }, answer: { _ in }, onDeath: {})
    }

    convenience init(_ redis: TestRedis, _ node: UInt64) throws { self.init(try redis.locator(), node) }

    /// Texts of the messages read, by their origin.
    func texts(of origin: UInt64) -> [String] {
        news.withLock { $0 }.compactMap { news in
            if case .message(origin, _, let bytes) = news { String(decoding: bytes, as: UTF8.self) } else { nil }
        }
    }

    var epochs: Int { news.withLock { news in news.count { if case .newEpoch = $0 { true } else { false } } } }
    var gaps: Int { news.withLock { news in news.count { if case .gap = $0 { true } else { false } } } }

    /// Sends a text that is kept for as long as it takes.
    func keep(_ text: String) { stream.send(Array(text.utf8), isKept: true) { _ in } }

    /// Sends a text, and says whether it is certain to be read.
    func send(_ text: String) async -> Bool {
        await withCheckedContinuation { continuation in
            stream.send(Array(text.utf8)) { result in
                continuation.resume(returning: (try? result.get()) != nil)
            }
        }
    }
}

@Suite("The stream of events", .enabled(if: TestRedis.isWanted), .timeLimit(.minutes(4)))
struct EventStreamTests {
    /// Runs `body` with started nodes that tick.
    private func with(_ redis: TestRedis, _ count: Int, _ body: ([Node]) async throws -> Void) async throws {
        let nodes = try (1...count).map { try Node(redis, UInt64($0)) }
        for node in nodes { try await node.redis.start() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for node in nodes { group.addTask { await node.redis.run() } }
            try await body(nodes)
            group.cancelAll()
        }
        for node in nodes { await node.redis.close() }
    }

    @Test("every node reads all messages, each sender's in order")
    func order() async throws {
        let redis = try TestRedis()
        try await with(redis, 3) { nodes in
            await withTaskGroup(of: Void.self) { group in
                for node in nodes {
                    group.addTask { for number in 0..<500 { #expect(await node.send("\(number)")) } }
                }
            }
            let expected = (0..<500).map(String.init)
            for node in nodes {
                for origin in 1...3 {
                    try await eventually("node \(node.stream.node) reads all of \(origin)") { node.texts(of: UInt64(origin)).count >= 500 }
                    #expect(node.texts(of: UInt64(origin)) == expected)
                }
                #expect(node.gaps == 0 && node.epochs == 0)
            }
        }
    }

    @Test("what was answered survives a Redis that comes back empty, and nothing is read twice")
    func emptied() async throws {
        let redis = try TestRedis()
        try await with(redis, 2) { nodes in
            let answered = Guarded<[[String]]>([[], []])
            let sending = Task {
                await withTaskGroup(of: Void.self) { group in
                    for (place, node) in nodes.enumerated() {
                        group.addTask {
                            var number = 0
                            while !Task.isCancelled {
                                number += 1
                                if await node.send("\(number)") { answered.withLock { $0[place].append("\(number)") } }
                            }
                        }
                    }
                }
            }
            for round in 1...3 {
                let before = answered.withLock { $0[0].count }
                try await eventually("messages are answered in round \(round)") { answered.withLock { $0[0].count } > before + 100 }
                redis.end()
                try await Task.sleep(for: .milliseconds(round * 300))
                try redis.start()
                try await eventually("epoch \(round) was met") { nodes.allSatisfy { $0.epochs == round } }
            }
            let before = answered.withLock { $0[1].count }
            try await eventually("messages are answered at last") { answered.withLock { $0[1].count } > before + 100 }
            sending.cancel()
            await sending.value
            for node in nodes {
                for (place, texts) in answered.withLock({ $0 }).enumerated() {
                    let origin = UInt64(place + 1)
                    try await eventually("node \(node.stream.node) reads what \(origin) was answered for") {
                        Set(texts).isSubset(of: node.texts(of: origin))
                    }
                    let read = node.texts(of: origin).compactMap { Int($0) }
                    #expect(read == read.sorted() && Set(read).count == read.count, "in order, and once")
                }
                #expect(node.gaps == 0)
            }
        }
    }

    @Test("a Redis that hangs fails messages in time, but for those that are kept, and none arrives twice once it goes on")
    func frozen() async throws {
        let redis = try TestRedis()
        try await with(redis, 2) { nodes in
            #expect(await nodes[0].send("before"))
            redis.freeze()
            async let isCertain = nodes[0].send("during")
            // The first one travels by then, and Redis may carry it out as it goes on. The next ones wait.
            try await Task.sleep(for: .milliseconds(100))
            nodes[0].keep("kept")
            #expect(await !isCertain)
            #expect(await !nodes[0].send("later"))
            redis.thaw()
            try await eventually("messages go again") { nodes[0].stream.figures.kept < 100 && nodes[0].stream.figures.lostReplies > 0 }
            var number = 0
            while await !nodes[0].send("after \(number)") { number += 1 }
            try await eventually("the last one is read") { nodes[1].texts(of: 1).contains("after \(number)") }
            let texts = nodes[1].texts(of: 1)
            #expect(Set(texts).count == texts.count && texts.first == "before" && texts.contains("kept"), "\(texts)")
            #expect(nodes[1].gaps == 0 && nodes[1].epochs == 0)
        }
    }

    @Test("a memory that is wiped while the connections stay is a new epoch")
    func wiped() async throws {
        let redis = try TestRedis()
        try await with(redis, 2) { nodes in
            #expect(await nodes[0].send("before"))
            let address = try redis.address()
            let link = RedisLink(
                name: "test", locate: { _ in (address.hosts[0], address) }, greet: { _ in })
            _ = try await link.run { _ in [RedisCommand("FLUSHALL")] }
            try await eventually("both nodes meet the new epoch") { nodes.allSatisfy { $0.epochs == 1 } }
            var number = 0
            while await !nodes[0].send("after \(number)") { number += 1 }
            try await eventually("the last one is read") { nodes[1].texts(of: 1).contains("after \(number)") }
            #expect(nodes[1].texts(of: 1).count { $0 == "before" } == 1)
            await link.close()
        }
    }

    @Test(
        "an unfit Redis is refused with what to do",
        arguments: [(["--maxmemory-policy", "allkeys-lru"], "set maxmemory-policy noeviction")])
    func unfit(settings: [String], sentence: String) async throws {
        let redis = try TestRedis(settings)
        let node = try Node(redis, 1)
        let failure = await #expect(throws: RedisFailure.self) { try await node.redis.start() }
        #expect(failure?.sentence.contains(sentence) == true, "\(failure?.sentence ?? "")")
        await node.redis.close()
    }

    @Test("a wrong password, and a port where nobody listens, are named")
    func closedDoors() async throws {
        let redis = try TestRedis()
        for (text, part) in [
            ("redis://:wrong@127.0.0.1:\(redis.port)", "WRONGPASS"), ("redis://127.0.0.1:\(redis.port)", "NOAUTH"),
            ("redis://127.0.0.1:1", "Connection refused"), ("redis://nowhere.invalid", "nowhere.invalid"),
            ("redis://:secret@127.0.0.1:\(redis.port)/99", "out of range"),
        ] {
            let node = Node(RedisLocator(try RedisAddress(text)), 1)
            let failure = await #expect(throws: RedisFailure.self) { try await node.redis.start() }
            #expect(failure?.sentence.contains(part) == true, "\(text): \(failure?.sentence ?? "")")
            await node.redis.close()
        }
    }
}
