import HubCore
import HubScaleOut
import HubTesting
import Testing

/// Nodes of two builds at one Redis. The next build reads versions 1 and 2, the one after it 2 and 3.
@Suite("Versions of messages", .enabled(if: TestRedis.isWanted), .timeLimit(.minutes(4)))
struct MessageVersionTests {
    private static let (old, next, late) = (MessageVersions(1, 1), MessageVersions(1, 2), MessageVersions(2, 3))

    private func node(_ redis: TestRedis, _ number: UInt64, _ versions: MessageVersions) throws -> RedisNode {
        RedisNode(
            try redis.locator(), prefix: "test", node: number, versions: versions, take: { _, _ in }, answer: { _ in }, onDeath: {})
    }

    private func run(_ nodes: [RedisNode], _ body: () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for node in nodes { group.addTask { await node.run() } }
            try await body()
            group.cancelAll()
        }
        for node in nodes { await node.close() }
    }

    @Test("nodes write what all of them read, and the higher one once the last older node is gone")
    func rise() async throws {
        let redis = try TestRedis()
        let old = try node(redis, 1, Self.old)
        let new = try [node(redis, 2, Self.next), node(redis, 3, Self.next)]
        for node in [old] + new { try await node.start() }
        try await run(new) {
            try await run([old]) {
                let beats = new[0].figures.beats
                try await eventually("beats enough to rise") { new[0].figures.beats > beats + UInt64(WrittenVersion.looksMax) + 4 }
                #expect(new.allSatisfy { $0.messageVersion == 1 } && old.messageVersion == 1)
            }
            // The old node has stopped, and said so.
            try await eventually("both write the higher version") { new.allSatisfy { $0.messageVersion == 2 } }
            #expect(new.allSatisfy { $0.figures.declaredDead == 0 })
        }
    }

    @Test("a node of the build before joins once the others write what it reads")
    func fall() async throws {
        let redis = try TestRedis()
        let new = try [node(redis, 2, Self.next), node(redis, 3, Self.next)]
        for node in new { try await node.start() }
        try await run(new) {
            try await eventually("both write the higher version") { new.allSatisfy { $0.messageVersion == 2 } }
            let old = try node(redis, 1, Self.old)
            try await old.start()
            #expect(new.allSatisfy { $0.messageVersion == 1 }, "they have lowered it before its start returns")
            await old.close()
        }
    }

    @Test("a build that skips one is refused with what to do, and is taken once the last one has stopped")
    func refused() async throws {
        let redis = try TestRedis()
        let old = try node(redis, 1, Self.old)
        try await old.start()
        try await run([old]) {
            let late = try node(redis, 2, Self.late)
            let failure = await #expect(throws: RedisFailure.self) { try await late.start() }
            #expect(failure?.isMistake == true)
            let words = "have the versions 1-1, and this Tandem reads 2-3; upgrade through"
            #expect(failure?.sentence.contains(words) == true, "\(String(describing: failure))")
            await late.close()
            let asked = await #expect(throws: RedisFailure.self) {
                _ = try await RedisCheck.ask(try redis.address(), shard: 0, database: nil, versions: Self.late) { 0 }
            }
            #expect(asked == failure)
            _ = try await RedisCheck.ask(try redis.address(), shard: 0, database: nil, versions: Self.next) { 0 }
        }
        _ = try await RedisCheck.ask(try redis.address(), shard: 0, database: nil, versions: Self.late) { 0 }
        let late = try node(redis, 3, Self.late)
        try await late.start()
        await late.close()
    }

    @Test("nodes of builds that tell no versions read the first one")
    func untold() async throws {
        let redis = try TestRedis()
        let old = try node(redis, 1, Self.old)
        try await old.start()
        let epoch = try await redis.run("GET", ["test:epoch"]).text?.split(separator: " ").first ?? ""
        // As a build before versions leaves it.
        _ = try await redis.run("DEL", ["test:\(epoch):versions"])
        let late = try node(redis, 2, Self.late)
        let failure = await #expect(throws: RedisFailure.self) { try await late.start() }
        #expect(failure?.sentence.contains("the versions 1-1") == true, "\(String(describing: failure))")
        for node in [old, late] { await node.close() }
    }
}
