import GRDB
import HubCore
import HubDelivery
import HubTesting
import OutboxTesting
import Testing

@testable import HubOutbox

@Suite("Outbox")
struct OutboxTests {
    @Test("an accepted push is leased before it is sent and written down after")
    func accepted() async throws {
        let test = try TestStore()
        try await test.device()
        let delivery = try await test.commitPush()
        let gateway = ScriptedGateway([.accepted(providerID: "projects/p/messages/7")])
        await test.outbox(gateway).enqueue([delivery])
        let row = try #require(try await test.row { $0.state == .accepted })
        #expect(row.state == .accepted && row.providerID == "projects/p/messages/7" && row.attempts == 1)
        #expect(gateway.sent.map(\.target.token) == ["token-of-u"])
    }

    @Test("the token is the one of the moment of sending, not of the decision")
    func rotatedToken() async throws {
        let test = try TestStore()
        try await test.device(token: "old")
        let delivery = try await test.commitPush()
        try await test.device(token: "new")
        let gateway = ScriptedGateway()
        await test.outbox(gateway).enqueue([delivery])
        _ = try await test.row { $0.state == .accepted }
        #expect(gateway.sent.map(\.target.token) == ["new"])
    }

    @Test("tokens that are found dead together are forgotten together")
    func deadTokens() async throws {
        let test = try TestStore()
        let users = (0..<20).map { "u\($0)" }
        let devices = (0..<10).map { "d\($0)" }
        var pushes: [PushRecord] = []
        for user in users {
            for device in devices { try await test.device(user: user, id: device, token: "\(user)-\(device)") }
            pushes += try await test.commitPushes(event: "e-\(user)", policy: .critical, user: user, devices: devices)
        }
        let gateway = ScriptedGateway(holds: true)
        let outbox = test.outbox(gateway)
        await outbox.enqueue(pushes)
        #expect(await eventually { gateway.sent.count == pushes.count })
        let before = test.store.figures.transactions
        gateway.release(.dead(reason: "UNREGISTERED", since: nil))
        #expect(await eventually { await outbox.sending == 0 })
        for user in users { #expect(try await test.store.devices(app: "1", user: user).allSatisfy { $0.token == nil }) }
        // One each would be more than 200.
        #expect(test.store.figures.transactions - before < 50)
    }

    @Test("a dead token is removed, and the next push says that there is none")
    func deadToken() async throws {
        let test = try TestStore()
        try await test.device()
        let gateway = ScriptedGateway([.dead(reason: "UNREGISTERED", since: nil)])
        let outbox = test.outbox(gateway)
        await outbox.enqueue([try await test.commitPush()])
        let row = try #require(try await test.row { $0.state == .failed })
        #expect(row.outcome == "UNREGISTERED")
        #expect(try await test.store.device(app: "1", user: "u", id: "d")?.token == nil)
        await outbox.enqueue([try await test.commitPush(event: "e2")])
        let second = try #require(try await test.row("e2") { $0.state == .undeliverable })
        #expect(second.outcome == "no token" && gateway.sent.count == 1)
    }

    @Test("a token that was registered after the gateway saw it die is kept")
    func reRegisteredToken() async throws {
        let test = try TestStore()
        try await test.device()
        let gateway = ScriptedGateway([.dead(reason: "Unregistered", since: test.clock.wallMilliseconds - 1000)])
        await test.outbox(gateway).enqueue([try await test.commitPush()])
        _ = try await test.row { $0.state == .failed }
        #expect(try await test.store.device(app: "1", user: "u", id: "d")?.token == "token-of-u")
    }

    @Test("a retry waits for its time, durably, and then goes out under the same nid")
    func retry() async throws {
        let test = try TestStore()
        try await test.device()
        let first = ScriptedGateway([.retry(after: nil, reason: "unavailable: http 503")])
        let outbox = test.outbox(first)
        await outbox.enqueue([try await test.commitPush()])
        let waiting = try #require(try await test.row { $0.state == .retry })
        #expect(waiting.dueAt > test.clock.wallMilliseconds && waiting.attempts == 1)
        await outbox.close()

        // Another process, later.
        test.clock.advance(milliseconds: waiting.dueAt - test.clock.wallMilliseconds)
        let second = ScriptedGateway()
        try await test.outbox(second).resume()
        let row = try #require(try await test.row { $0.state == .accepted })
        #expect(row.attempts == 2 && second.sent.map(\.message.nid) == first.sent.map(\.message.nid))
    }

    @Test("a retry goes out by itself when its time comes")
    func timer() async throws {
        // The timer's own task once cancelled itself while arming the next one, and the store's reads behind it failed.
        let test = try TestStore()
        try await test.device()
        let gateway = ScriptedGateway([.retry(after: nil, reason: "transport: reset")])
        let outbox = test.outbox(gateway)
        await outbox.enqueue([try await test.commitPush(lifeMilliseconds: 30_000)])
        let waiting = try #require(try await test.row { $0.state == .retry })
        // Another one waits for longer, so that there is a next timer to arm.
        await outbox.enqueue([try await test.commitPush(event: "e2", delayMilliseconds: 20_000)])
        test.clock.advance(milliseconds: waiting.dueAt - test.clock.wallMilliseconds)
        let row = try #require(try await test.row { $0.state == .accepted })
        #expect(row.state == .accepted && row.attempts == 2 && gateway.sent.count == 2)
        await outbox.close()
    }

    @Test("the hour of trying begins with the first attempt since a replay, not with the event")
    func replayed() async throws {
        let test = try TestStore()
        try await test.device()
        let hour: Int64 = 3_600_000
        let outbox = test.outbox(
            ScriptedGateway(
                [.rejected(reason: "http 413")] + Array(repeating: .retry(after: nil, reason: "unavailable: http 503"), count: 40)))
        await outbox.enqueue([try await test.commitPush(lifeMilliseconds: 20 * hour)])
        _ = try await test.row { $0.state == .failed }
        test.clock.advance(milliseconds: 2 * hour)
        let replayedAt = test.clock.wallMilliseconds
        await outbox.enqueue(try await test.store.replayDeadLetters(.nids(["nid-e1"]), app: "1", now: replayedAt, ttl: nil).due)

        var row = try #require(try await test.row { $0.attempts > 0 && ($0.state == .retry || $0.state == .failed) })
        #expect(row.state == .retry && row.attempts == 1)
        while row.state == .retry {
            let attempts = row.attempts
            test.clock.advance(milliseconds: row.dueAt - test.clock.wallMilliseconds)
            await outbox.enqueue([])
            row = try #require(try await test.row { $0.attempts > attempts && ($0.state == .retry || $0.state == .failed) })
        }
        #expect(row.outcome == "unavailable: http 503: failed for an hour" && row.attempts > 5)
        #expect(test.clock.wallMilliseconds - replayedAt <= hour)
        await outbox.close()
    }

    @Test("the hour of trying goes on over a restart")
    func restarted() async throws {
        let test = try TestStore()
        try await test.device()
        let (hour, began) = (Int64(3_600_000), test.clock.wallMilliseconds)
        func down() -> ScriptedGateway { ScriptedGateway(Array(repeating: .retry(after: nil, reason: "unavailable: http 503"), count: 40)) }
        func next(after row: PushRecord, _ outbox: Outbox) async throws -> PushRecord {
            test.clock.advance(milliseconds: row.dueAt - test.clock.wallMilliseconds)
            await outbox.enqueue([])
            return try await test.row { $0.attempts > row.attempts && ($0.state == .retry || $0.state == .failed) } ?? row
        }
        let first = test.outbox(down())
        await first.enqueue([try await test.commitPush(lifeMilliseconds: 20 * hour)])
        var row = try #require(try await test.row { $0.state == .retry })
        while test.clock.wallMilliseconds < began + hour / 3 { row = try await next(after: row, first) }
        #expect(row.state == .retry)
        await first.close()
        try await test.reopen()

        let second = test.outbox(down())
        try await second.resume()
        while row.state == .retry { row = try await next(after: row, second) }
        #expect(row.outcome == "unavailable: http 503: failed for an hour")
        #expect(test.clock.wallMilliseconds - began <= hour)
        await second.close()
    }

    @Test("what a crash left leased is sent again at the next start, and what was accepted is not")
    func crash() async throws {
        let test = try TestStore()
        try await test.device()
        let stuck = ScriptedGateway(holds: true)
        await test.outbox(stuck).enqueue([try await test.commitPush()])
        _ = try await test.row { $0.state == .leased }
        await test.outbox(ScriptedGateway()).enqueue([try await test.commitPush(event: "e2")])
        _ = try await test.row("e2") { $0.state == .accepted }

        let next = ScriptedGateway()
        try await test.outbox(next).resume()
        _ = try await test.row { $0.state == .accepted }
        #expect(next.sent.map(\.message.event) == ["e1"])
    }

    @Test("an answer that the store does not take is stored by a later try, and its push goes out once")
    func storedLate() async throws {
        let test = try TestStore()
        try await test.device()
        let delivery = try await test.commitPush()
        let gateway = ScriptedGateway(holds: true)
        let outbox = test.outbox(gateway)
        await outbox.enqueue([delivery])
        #expect(await eventually { gateway.sent.count == 1 })
        let raw = try DatabaseQueue(path: test.folder.appendingPathComponent("t.db").path)
        try await raw.write { try $0.execute(sql: "CREATE TRIGGER refuse BEFORE UPDATE ON delivery BEGIN SELECT RAISE(ABORT, 'no'); END") }
        gateway.release(.accepted(providerID: "m", environment: nil))
        // Time for the first try, which fails. On a slow machine it comes later, and succeeds.
        try await Task.sleep(for: .milliseconds(200))
        #expect(await outbox.sending == 1)
        try await raw.write { try $0.execute(sql: "DROP TRIGGER refuse") }
        #expect(try await test.row { $0.state == .accepted }?.providerID == "m")
        try await outbox.resume()
        #expect(await eventually { await outbox.sending == 0 } && gateway.sent.count == 1)
    }

    @Test("a notification that is worth nothing any more is not sent")
    func expired() async throws {
        let test = try TestStore()
        try await test.device()
        let delivery = try await test.commitPush(lifeMilliseconds: 1000)
        test.clock.advance(milliseconds: 1000)
        let gateway = ScriptedGateway()
        await test.outbox(gateway).enqueue([delivery])
        let row = try #require(try await test.row { $0.state == .expired })
        #expect(row.state == .expired && gateway.sent.isEmpty)
    }

    @Test("without credentials a push ends as skipped, with permission denied as undeliverable")
    func notSent() async throws {
        let test = try TestStore()
        try await test.device()
        await test.outbox(ScriptedGateway([.skippedUnconfigured])).enqueue([try await test.commitPush()])
        #expect(try await test.row { $0.state == .skippedUnconfigured }?.state == .skippedUnconfigured)
        try await test.device(user: "v", token: "token-of-v", notifications: false)
        let gateway = ScriptedGateway()
        await test.outbox(gateway).enqueue([try await test.commitPush(event: "e2", user: "v")])
        #expect(try await test.row("e2") { $0.state == .undeliverable }?.outcome == "permission denied")
        #expect(gateway.sent.isEmpty)
    }

    @Test("more pushes than may be in flight all go out")
    func many() async throws {
        let test = try TestStore()
        try await test.device()
        var deliveries: [PushRecord] = []
        for number in 0..<(PushFlow.leaseMax * 2 + 7) { deliveries.append(try await test.commitPush(event: "e\(number)")) }
        let gateway = ScriptedGateway()
        await test.outbox(gateway).enqueue(deliveries)
        _ = try await test.row("e\(deliveries.count - 1)") { $0.state == .accepted }
        #expect(Set(gateway.sent.map(\.message.nid)).count == deliveries.count && gateway.sent.count == deliveries.count)
    }
}
