import HubCore
import HubDelivery
import HubTesting
import HubWebhooks
import PusherProtocol
import Testing

/// Several nodes, of which one owns an app's webhooks at a time.
extension WebhookServiceTests {
    @Test("two nodes tell every fact once, whoever owns the app: the next owner tells what the former one had not stored")
    func owners() async throws {
        let server = try LocalHTTPServer { _ in .answer(200) }
        defer { server.stop() }
        let (store, time, owner) = (MemoryWebhookStore(), ShiftedTime(), Guarded(0))
        let nodes = try (1...2).map { node in
            try service([.sample(server.url)], store: store, time: time) { _ in owner.withLock { $0 } == node }
        }
        for node in nodes { try await node.resume() }
        var expected: [String] = []
        // Every change of the owner comes after a fact that nobody has told, or that somebody has.
        for (step, next) in [1, 2, 0, 1, 2, 1].enumerated() {
            let fact = try ChannelFact.fact("c\(step)", .occupied, at: UInt64(step + 1))
            for node in nodes { node.report([fact]) }
            expected.append("channel_occupied c\(step)")
            owner.withLock { $0 = next }
            if next > 0 { try #require(await eventually { told(server).count >= expected.count }) }
        }
        #expect(told(server) == expected)
        #expect(await eventually { store.batches.isEmpty })
        for node in nodes { await node.stop() }
    }

    @Test("a node that loses an app and gets it back meanwhile sends what it was storing, once")
    func storedLate() async throws {
        let server = try LocalHTTPServer { _ in .answer(200) }
        defer { server.stop() }
        // Looks at the owner since it changed last.
        let (store, owner) = (MemoryWebhookStore(), Guarded((isOwn: true, looks: 0)))
        let node = try service([.sample(server.url)], store: store) { _ in
            owner.withLock { owner in
                owner.looks += 1
                return owner.isOwn
            }
        }
        try await node.resume()
        store.hold()
        node.report([try .fact("a", .occupied, at: 1)])
        try #require(await eventually { store.heldCount == 1 })
        for isOwn in [false, true] {
            owner.withLock { $0 = (isOwn, 0) }
            try #require(await eventually { owner.withLock { $0.looks } >= 3 })
        }
        store.release()
        node.report([try .fact("b", .occupied, at: 2)])
        #expect(await eventually { told(server).count >= 2 && store.batches.isEmpty })
        #expect(told(server) == ["channel_occupied a", "channel_occupied b"])
        await node.stop()
    }

    @Test("a mark covers no fact that is not written with it")
    func marked() async throws {
        let server = try LocalHTTPServer { _ in .answer(200) }
        defer { server.stop() }
        let (store, time) = (MemoryWebhookStore(), ShiftedTime())
        // The first write ends the first node's turn, while the last fact waits for others to share its request.
        let nodes = try [true, false].map { isFirst in
            try service([.sample(server.url)], store: store, time: time) { _ in isFirst == (store.writes == 0) }
        }
        for node in nodes { try await node.resume() }
        let facts = try (0...WebhookLimits.batchEventsMax).map { try ChannelFact.fact("c\($0)", .occupied, at: UInt64($0 + 1)) }
        for node in nodes { node.report(facts) }
        #expect(await eventually { told(server).count == facts.count })
        #expect(told(server) == facts.map { "channel_occupied \($0.channel.text)" })
        for node in nodes { await node.stop() }
    }

    @Test("a node that leaves stores what it was told, and the next owner goes on behind it")
    func leaves() async throws {
        let server = try LocalHTTPServer { _ in .answer(200) }
        defer { server.stop() }
        let (store, time, owner) = (MemoryWebhookStore(), ManualClock(), Guarded(1))
        let nodes = try (1...2).map { node in
            try service([.sample(server.url)], store: store, time: time) { _ in owner.withLock { $0 } == node }
        }
        for node in nodes { try await node.resume() }
        let joined = try ChannelFact.fact("presence-a", .memberAdded(user: "ada"), at: 1)
        for node in nodes { node.report([joined]) }
        let isDelivered = await eventually {
            time.advance(milliseconds: 10)
            return server.requests.count == 1
        }
        try #require(isDelivered)
        // From here the clock stands: the removal waits for its three seconds, the other fact for company in its request.
        let later = [
            try ChannelFact.fact("presence-a", .memberRemoved(user: "ada"), at: 2), try ChannelFact.fact("b", .occupied, at: 3),
        ]
        for node in nodes { node.report(later) }
        await nodes[0].leave()
        await nodes[0].stop()
        // The end of one node of two is not everybody's end, so nobody is told of the removal.
        #expect(told(server).allSatisfy { $0 != "member_removed presence-a" })
        owner.withLock { $0 = 2 }
        let isTold = await eventually {
            time.advance(milliseconds: 10)
            return told(server).count == 3
        }
        #expect(isTold && told(server) == ["member_added presence-a", "channel_occupied b", "member_removed presence-a"])
        await nodes[1].stop()
    }
}
