import HubCore
import HubDefinitions
import HubDelivery
import HubTesting
import Logging
import OutboxTesting
import Synchronization
import Testing

@testable import HubOutbox

private let hour: Int64 = 3_600_000

/// Somebody sets the wall clock by hours while pushes wait.
@Suite("Outbox clock")
struct OutboxClockTests {
    @Test("a retry waits for as long as before, and goes out", arguments: [-2, 3])
    func retry(hours: Int64) async throws {
        let test = try TestStore()
        try await test.device()
        let gateway = ScriptedGateway([.retry(after: nil, reason: "unavailable: http 503")])
        let outbox = test.outbox(gateway)
        await outbox.enqueue([try await test.commitPush()])
        let waiting = try #require(try await test.row { $0.state == .retry })
        let wait = waiting.dueAt - test.clock.wallMilliseconds
        test.clock.setWall(by: hours * hour)
        test.clock.advance(milliseconds: wait - 100)
        await outbox.enqueue([])
        #expect(await eventually { await outbox.flow.clock.shift == hours * hour })
        #expect(gateway.sent.count == 1)
        test.clock.advance(milliseconds: 200)
        await outbox.enqueue([])
        #expect(try await test.row { $0.state == .accepted }?.attempts == 2)
        await outbox.close()
    }

    @Test("what waits neither expires with the clock nor outlives itself", arguments: [-2, 3])
    func expiry(hours: Int64) async throws {
        let test = try TestStore()
        try await test.device()
        let gateway = ScriptedGateway()
        let outbox = test.outbox(gateway)
        await outbox.enqueue([
            try await test.commitPush(event: "soon", lifeMilliseconds: 600_000, delayMilliseconds: 60_000),
            try await test.commitPush(event: "late", lifeMilliseconds: 600_000, delayMilliseconds: 700_000),
        ])
        test.clock.setWall(by: hours * hour)
        test.clock.advance(seconds: 61)
        await outbox.enqueue([])
        #expect(try await test.row("soon") { ![.due, .leased].contains($0.state) }?.state == .accepted)
        // The gateway is told the time that the phone will have.
        #expect(gateway.sent.first?.message.expiresAt == ManualClock.start + 600_000 + hours * hour)
        test.clock.advance(seconds: 640)
        await outbox.enqueue([])
        #expect(try await test.row("late") { ![.due, .leased].contains($0.state) }?.state == .expired)
        #expect(gateway.sent.count == 1)
        await outbox.close()
    }

    @Test("what a gateway has when the clock is set is tried again as if it had not been", arguments: [-2, 3])
    func inFlight(hours: Int64) async throws {
        let test = try TestStore()
        try await test.device()
        let gateway = ScriptedGateway(holds: true)
        let outbox = test.outbox(gateway)
        await outbox.enqueue([try await test.commitPush()])
        #expect(await eventually { gateway.sent.count == 1 })
        test.clock.setWall(by: hours * hour)
        await outbox.enqueue([])
        #expect(await eventually { await outbox.flow.clock.shift == hours * hour })
        gateway.release(.retry(after: nil, reason: "unavailable: http 503"))
        let row = try #require(try await test.row { $0.state == .retry || $0.state == .failed })
        #expect(row.state == .retry && (1...30_000).contains(row.dueAt - test.clock.wallMilliseconds))
        await outbox.close()
    }

    @Test("what is committed after the clock was set goes its way, whichever is noticed first", arguments: [-2, 3])
    func committedAfter(hours: Int64) async throws {
        let test = try TestStore()
        try await test.device()
        let gateway = ScriptedGateway()
        let outbox = test.outbox(gateway)
        await outbox.enqueue([try await test.commitPush(event: "before", policy: .notify, group: "g", delayMilliseconds: 60_000)])
        test.clock.setWall(by: hours * hour)
        await outbox.enqueue([try await test.commitPush(event: "after", policy: .notify, group: "g")])
        #expect(try await test.row("after") { ![.due, .leased].contains($0.state) }?.state == .accepted)
        // The newer one of the group has not been taken for the older.
        #expect(gateway.sent.map(\.message.event) == ["after"])
        await outbox.close()
    }

    @Test("what is made before the clock is set, and comes after the step was noticed, lives as long as before", arguments: [-2, 3])
    func comesLate(hours: Int64) async throws {
        let test = try TestStore()
        try await test.device()
        let gateway = ScriptedGateway()
        let outbox = test.outbox(gateway)
        await outbox.enqueue([])
        let push = try await test.commitPush(lifeMilliseconds: 60_000)
        test.clock.setWall(by: hours * hour)
        await outbox.enqueue([])
        #expect(await eventually { await outbox.flow.clock.shift == hours * hour })
        await outbox.enqueue([push])
        #expect(try await test.row { ![.due, .leased].contains($0.state) }?.state == .accepted)
        await outbox.close()
    }

    @Test("the end of quiet hours is a time of day: it is asked for again", arguments: [3, -2])
    func quietHours(hours: Int64) async throws {
        let yaml = """
            channel: presence-quiz-{session}
            quiet_hours: { from: "22:00", to: "08:00", timezone: Europe/Berlin }
            events: { n: { to: all, policy: notify, notification: { title: a, body: b } } }
            """
        let test = try TestStore()
        try await test.device()
        let gateway = ScriptedGateway()
        let outbox = test.outbox(gateway, definitions: try DefinitionSet.load([("quiz.yaml", yaml)]))
        await outbox.enqueue([try await test.commitPush(policy: .notify, lifeMilliseconds: 20 * hour)])
        _ = try await test.row { $0.outcome == "quiet hours" }
        test.clock.setWall(by: hours * hour)
        await outbox.enqueue([])
        // Two in the night when it was decided.
        let end = ManualClock.start + 6 * hour
        #expect(try await test.row { $0.dueAt == end }?.dueAt == end)
        // It may be asked for again before that was noticed, or after.
        #expect(await eventually { await outbox.flow.queue.unparked.map(\.dueAt) == [end] })
        #expect(end - test.clock.wallMilliseconds == (6 - hours) * hour && gateway.sent.isEmpty)
        test.clock.advance(milliseconds: (6 - hours) * hour)
        await outbox.enqueue([])
        #expect(try await test.row { $0.state == .accepted }?.state == .accepted)
        await outbox.close()
    }

    @Test("a step is told once, with both times and by how much")
    func told() async throws {
        let test = try TestStore()
        let lines = KeptLines()
        let outbox = Outbox(
            gateway: ScriptedGateway(), directory: test.store, store: test.store, definitions: .empty, time: test.clock,
            logger: Logger(label: "test") { _ in lines })
        test.clock.setWall(by: -2 * hour)
        for _ in 0..<3 {
            await outbox.enqueue([])
            #expect(await eventually { await outbox.flow.clock.shift == -2 * hour })
        }
        let told = lines.all.withLock { $0 }.filter { $0.contains("wall clock was set") }
        #expect(told.count == 1)
        #expect(told.first?.contains("2026-01-09T01:00:00.000Z") == true && told.first?.contains("2026-01-08T23:00:00.000Z") == true)
        #expect(told.first?.contains("-7200") == true)
        await outbox.close()
    }
}

private struct KeptLines: LogHandler {
    final class Lines: Sendable {
        let kept = Mutex<[String]>([])
        func withLock<Value>(_ body: ([String]) -> Value) -> Value { kept.withLock { body($0) } }
    }
    let all = Lines()
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { all.kept.withLock { $0.append("\(event.message) \(event.metadata ?? [:])") } }
}
