import Foundation
import HubCore
import HubScaleOut
import HubTesting
import Testing

/// A Redis that cannot be the backplane, or whose neighbours endanger it, on real servers.
@Suite("An unfit Redis", .enabled(if: TestRedis.isWanted), .timeLimit(.minutes(4)))
struct UnfitRedisTests {
    private func backplane(_ address: RedisAddress, _ database: String) -> RedisBackplane {
        RedisBackplane(address, database: database, take: { _, _, _ in }, answer: { _ in }, onDeath: {})
    }

    private func ask(
        _ address: RedisAddress, database: String? = nil, clockAhead: Int64 = 0
    ) async throws(RedisFailure) -> RedisCheck.Answer {
        try await RedisCheck.ask(address, shard: 0, database: database) { Int64(Date().timeIntervalSince1970 * 1000) + clockAhead }
    }

    @Test("that joins the nodes of another database is refused, with the setting that helps")
    func twoClusters() async throws {
        let redis = try TestRedis()
        let first = backplane(try redis.address(), "one")
        try await first.start()
        let second = backplane(try redis.address(), "two")
        let failure = await #expect(throws: RedisFailure.self) { try await second.start() }
        #expect(failure?.isMistake == true)
        #expect(failure?.sentence.contains("redis://HOST/?prefix=NAME") == true, "\(String(describing: failure))")
        await second.close()
        let asked = await #expect(throws: RedisFailure.self) { _ = try await ask(try redis.address(), database: "two") }
        #expect(asked == failure)
        #expect(try await ask(try redis.address(), database: "one").warnings == [])

        let own = backplane(try redis.address("prefix=other"), "two")
        try await own.start()
        let sibling = backplane(try redis.address(), "one")
        try await sibling.start()
        for node in [first, own, sibling] { await node.close() }
    }

    @Test("remembers a database while its nodes beat, and not for ever")
    func remembered() async throws {
        let redis = try TestRedis()
        let first = backplane(try redis.address(), "one")
        try await first.start()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await first.run() }
            _ = try await redis.run("PEXPIRE", ["test:database", "5000"])
            #expect(await eventually { (try? await redis.run("PTTL", ["test:database"]).integer) ?? 0 > 30_000 }, "a beat renews it")
            await first.close()
        }
        _ = try await redis.run("PEXPIRE", ["test:database", "1"])
        #expect(await eventually { (try? await redis.run("EXISTS", ["test:database"]).integer) == 0 })
        let second = backplane(try redis.address(), "two")
        try await second.start()
        await second.close()
    }

    @Test("is named with what to do: too eager to forget, closed, away, none at all")
    func named() async throws {
        let forgetful = try TestRedis(["--maxmemory-policy", "allkeys-lru"])
        let redis = try TestRedis()
        for (text, part, isMistake) in [
            ("redis://:secret@127.0.0.1:\(forgetful.port)", "set maxmemory-policy noeviction", true),
            ("redis://:wrong@127.0.0.1:\(redis.port)", "WRONGPASS", true),
            ("redis://127.0.0.1:\(redis.port)", "look at user and password", true),
            ("redis://:secret@127.0.0.1:\(redis.port)/99", "out of range", true), ("redis://127.0.0.1:1", "does not answer", false),
        ] {
            let failure = await #expect(throws: RedisFailure.self) { _ = try await ask(try RedisAddress(text)) }
            #expect(failure?.sentence.contains(part) == true && failure?.isMistake == isMistake, "\(text): \(String(describing: failure))")
        }
        redis.freeze()
        let frozen = await #expect(throws: RedisFailure.self) { _ = try await ask(try redis.address()) }
        #expect(frozen?.isMistake == false && frozen?.sentence.contains("does not answer") == true)
        redis.thaw()
    }

    @Test("is warned of: a clock that differs by minutes, and keys of others", arguments: [(200_000, "ahead of"), (-200_000, "behind")])
    func warned(clockAhead: Int64, words: String) async throws {
        let redis = try TestRedis()
        #expect(try await ask(try redis.address()).warnings == [])
        #expect(try await ask(try redis.address(), clockAhead: 30_000).warnings == [])
        let warnings = try await ask(try redis.address(), clockAhead: clockAhead).warnings
        #expect(warnings.count == 1 && warnings[0].contains("min") && warnings[0].contains("\(words) that of Redis"), "\(warnings)")
        _ = try await redis.run("SET", ["sessions:7", "x"])
        let foreign = try await ask(try redis.address()).warnings
        #expect(foreign.count == 1 && foreign[0].contains("sessions:7"), "\(foreign)")
    }
}
