import HubCore
import HubScaleOut
import HubTesting
import Testing

@testable import HubServer

@Suite("Numbers of all nodes", .enabled(if: TestRedis.isWanted), .timeLimit(.minutes(4)))
struct NumbersRelayTests {
    @Test("each node leaves its numbers while somebody looks at one of them, and reads none otherwise")
    func exchanged() async throws {
        let (server, clock, reads) = (try TestRedis(), ManualClock(), Guarded([0, 0, 0]))
        let nodes = try (0..<3).map { _ in RedisBackplane(try server.address(), take: { _, _, _ in }, answer: { _ in }, onDeath: {}) }
        for node in nodes { try await node.start() }
        let names = nodes.map(\.node.hexDigits)
        // The third node is gone for the others.
        let relays = nodes.enumerated().map { place, node in
            NumbersRelay(
                read: { done in
                    reads.withLock { $0[place] += 1 }
                    done("tandem_connections \(place)\n")
                }, me: { names[place] }, living: { Set(names.prefix(2)) }, time: clock)
        }
        func pass(_ milliseconds: Int64) async throws {
            clock.advance(milliseconds: milliseconds)
            for (relay, node) in zip(relays, nodes) { try await relay.turn(node.board) }
        }
        for _ in 0..<3 { try await pass(1_000) }
        #expect(reads.withLock { $0 } == [0, 0, 0], "nobody looks")
        #expect(!relays[0].isBusy)
        #expect(relays[0].others().isEmpty)
        for _ in 0..<3 { try await pass(1_000) }
        #expect(relays[0].others() == [names[1]: "tandem_connections 1\n"])
        let before = reads.withLock { $0 }
        try await pass(500)
        #expect(reads.withLock { $0 } == before, "once a second")
        #expect(relays[1].others().isEmpty, "its first question")
        #expect(relays[0].isBusy && relays[1].isBusy)
        // Redis forgets the wish after six seconds of its own clock.
        let keys = try await server.run("KEYS", ["test:*:numbers*"]).array?.compactMap(\.text) ?? []
        _ = try await server.run("DEL", keys)
        for _ in 0..<2 { try await pass(NumbersRelay.looksFor) }
        #expect(!relays[0].isBusy, "what it had read is gone")
        for node in nodes { await node.close() }
    }
}
