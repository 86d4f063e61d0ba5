import HubCore
import HubDelivery
import HubScaleOut
import HubTesting
import Testing

@testable import HubServer

/// Things that nodes leave for each other in Redis beside the stream.
@Suite("The board of the nodes", .enabled(if: TestRedis.isWanted), .timeLimit(.minutes(4)))
struct LiveRelayTests {
    /// Nodes with a live tail each, whose relays turn when the test says so.
    private struct Stage {
        let clock: ManualClock
        let backplanes: [RedisBackplane]
        let streams: [LiveStream]
        let relays: [LiveRelay]

        init(_ backplanes: [RedisBackplane]) {
            let clock = ManualClock()
            self.clock = clock
            self.backplanes = backplanes
            let streams = backplanes.map { _ in LiveStream(time: clock) }
            self.streams = streams
            let names = Set(backplanes.map(\.node.hexDigits))
            relays = zip(backplanes, streams).map { backplane, stream in
                LiveRelay(stream, board: { backplane.board }, me: { backplane.node.hexDigits }, living: { names }, time: clock)
            }
        }

        /// Every node looks at the board, twice: the second time it has heard of what the others left the first time.
        func pass(_ milliseconds: Int64, of nodes: [Int]) async throws {
            clock.advance(milliseconds: milliseconds)
            for _ in 0..<2 { for node in nodes { _ = try await relays[node].turn() } }
        }

        func join(at node: Int, user: String) {
            streams[node].note(app: "1", .join, channel: "c", user: user) { .join(socket: "1.\(node)") }
        }
    }

    private func with(_ count: Int, _ body: (Stage) async throws -> Void) async throws {
        let server = try TestRedis()
        let nodes = try (0..<count).map { _ in RedisBackplane(try server.address(), take: { _, _, _ in }, answer: { _ in }, onDeath: {}) }
        for node in nodes { try await node.start() }
        try await body(Stage(nodes))
        for node in nodes { await node.close() }
    }

    @Test("a listener is told what all nodes note, and of nodes that tell nothing")
    func told() async throws {
        try await with(3) { stage in
            let filter = LiveFilter(app: "1", user: "u")
            var page = try #require(stage.streams[0].page(filter, after: nil))
            #expect(!stage.streams[1].isWatched, "nobody has told the others yet")
            try await stage.pass(500, of: [0, 1, 2])
            #expect(stage.streams[1].isWatched && stage.streams[2].isWatched)
            for node in 0..<3 {
                stage.join(at: node, user: "u")
                stage.join(at: node, user: "v")
            }
            try await stage.pass(100, of: [1, 2, 0])
            page = try #require(stage.streams[0].page(filter, after: page.cursor))
            #expect(page.facts.map(\.user) == ["u", "u", "u"] && !page.isGap && page.skipped == 0)
            for node in 0..<3 { #expect(page.facts.contains { $0.detail == .join(socket: "1.\(node)") }, "node \(node)") }
            #expect(try #require(stage.streams[0].page(filter, after: page.cursor)).isEmpty, "each is told once")
            // The third node falls silent.
            for _ in 0..<6 { try await stage.pass(1000, of: [0, 1]) }
            #expect(stage.relays[0].missing(of: page.listener) == [stage.backplanes[2].node.hexDigits])
            try await stage.pass(1000, of: [0, 2, 1])
            #expect(stage.relays[0].missing(of: page.listener) == [])
        }
    }

    @Test("nobody collects for a listener that has gone, nor for one whose node has gone")
    func gone() async throws {
        try await with(2) { stage in
            let filter = LiveFilter(app: "1")
            _ = stage.streams[0].page(filter, after: nil)
            try await stage.pass(500, of: [0, 1])
            #expect(try await stage.relays[1].turn())
            // Nobody asks any more, and its own node says so.
            for _ in 0..<3 { try await stage.pass(LiveStream.silenceMax / 2 + 1, of: [0, 1]) }
            for relay in stage.relays { #expect(try await !relay.turn()) }
            _ = stage.streams[0].page(filter, after: nil)
            try await stage.pass(1000, of: [0, 1])
            #expect(try await stage.relays[1].turn())
            // The listener's node is dead.
            for _ in 0..<6 { try await stage.pass(1000, of: [1]) }
            #expect(try await !stage.relays[1].turn())
            #expect(try await stage.backplanes[1].board.listeners(own: [:], gone: []).isEmpty)
        }
    }

    @Test("facts beyond the rate are counted, whatever node left them out")
    func sampled() async throws {
        try await with(2) { stage in
            let filter = LiveFilter(app: "1")
            let page = try #require(stage.streams[0].page(filter, after: nil))
            try await stage.pass(500, of: [0, 1])
            for number in 0..<300 { stage.join(at: 1, user: "u\(number)") }
            try await stage.pass(100, of: [1, 0])
            let next = try #require(stage.streams[0].page(filter, after: page.cursor))
            #expect(next.facts.count + Int(next.skipped) == 300 && next.facts.count <= 220, "\(next.facts.count), \(next.skipped)")
        }
    }

    @Test("a board is empty until somebody listens, looks at numbers or is signed out, and a node's beats tell")
    func empty() async throws {
        func with(_ body: (Stage, _ told: (Bool) async -> Bool) async throws -> Void) async throws {
            try await self.with(2) { stage in
                // The runs end with the nodes.
                for node in stage.backplanes { Task { await node.run() } }
                try await body(stage) { hasBoard in await eventually { stage.backplanes[1].hasBoard == hasBoard } }
            }
        }
        try await with { stage, told in
            #expect(!stage.relays[0].isBusy && !stage.backplanes[1].hasBoard)
            _ = stage.streams[0].page(LiveFilter(app: "1"), after: nil)
            #expect(stage.relays[0].isBusy)
            try await stage.pass(500, of: [0, 1])
            #expect(await told(true))
            #expect(stage.relays[1].isBusy)
            for _ in 0..<3 { try await stage.pass(LiveStream.silenceMax / 2 + 1, of: [0, 1]) }
            #expect(await told(false))
            _ = try await stage.backplanes[0].board.numbers(of: "node", nil, isWanted: true)
            #expect(await told(true))
        }
        try await with { stage, told in
            _ = try await stage.backplanes[0].board.signedOut(["viewer.200.a": 200], now: 100)
            #expect(await told(true))
        }
    }

    @Test("a session that was signed out at one node is known to all, until it would have expired")
    func signedOut() async throws {
        try await with(2) { stage in
            let boards = stage.backplanes.map(\.board)
            #expect(try await boards[0].signedOut([:], now: 100) == [])
            _ = try await boards[0].signedOut(["viewer.200.a": 200, "operator.300.b": 300], now: 100)
            #expect(try await boards[1].signedOut(["viewer.400.c": 400], now: 199) == ["viewer.200.a", "operator.300.b", "viewer.400.c"])
            #expect(try await boards[0].signedOut([:], now: 300) == ["viewer.400.c"])
            let many = Dictionary(uniqueKeysWithValues: (0..<1_500).map { ("viewer.\(1000 + $0).x", Int64(1000 + $0)) })
            let kept = try await boards[0].signedOut(many, now: 300)
            #expect(kept.count == NodeBoard.sessionsMax && kept.first == "viewer.1500.x")
        }
    }
}
