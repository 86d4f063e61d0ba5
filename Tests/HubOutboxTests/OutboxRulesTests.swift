import HubCore
import HubDefinitions
import HubDelivery
import HubTesting
import OutboxTesting
import Testing

@testable import HubOutbox

private let hour: Int64 = 3_600_000

/// Pushes that the outbox holds back, and for how long. The clock begins at two in the night in Berlin.
@Suite("Outbox rules")
struct OutboxRulesTests {
    private static let yaml = """
        channel: presence-quiz-{session}
        quiet_hours: { from: "22:00", to: "08:00", timezone: Europe/Berlin }
        alerts: { burst: 2, every: 1m }
        events:
          n: { to: all, policy: notify, notification: { title: a, body: b } }
        """
    private let quiet: DefinitionSet

    init() throws {
        quiet = try DefinitionSet.load([("quiz.yaml", Self.yaml)])
    }

    /// Five alerts of one participant: all that go out at once.
    private func spend(_ test: TestStore, _ outbox: Outbox) async throws {
        for number in 0..<5 { await outbox.enqueue([try await test.commitPush(event: "first\(number)", policy: .notify)]) }
        _ = try await test.row("first4") { $0.state == .accepted }
    }

    @Test("a sixth alert within a second waits its turn, and a critical one does not")
    func cap() async throws {
        let test = try TestStore()
        try await test.device()
        let gateway = ScriptedGateway()
        let outbox = test.outbox(gateway)
        try await spend(test, outbox)
        await outbox.enqueue([try await test.commitPush(event: "sixth", policy: .notify)])
        let waiting = try #require(try await test.row("sixth") { $0.outcome != nil })
        #expect(waiting.state == .due && waiting.outcome == "alert cap" && waiting.attempts == 0)
        #expect(waiting.dueAt == test.clock.wallMilliseconds + 10_000)
        await outbox.enqueue([try await test.commitPush(event: "critical", policy: .critical)])
        _ = try await test.row("critical") { $0.state == .accepted }
        #expect(gateway.sent.count == 6)

        test.clock.advance(seconds: 10)
        await outbox.enqueue([])
        #expect(try await test.row("sixth") { $0.state == .accepted }?.attempts == 1)
        await outbox.close()
    }

    @Test("the newest of a group takes the place of the one that waits", arguments: [Policy.notify, .critical])
    func displaced(newest: Policy) async throws {
        let test = try TestStore()
        try await test.device()
        let gateway = ScriptedGateway()
        let outbox = test.outbox(gateway)
        try await spend(test, outbox)
        await outbox.enqueue([try await test.commitPush(event: "older", policy: .notify, group: "g")])
        _ = try await test.row("older") { $0.outcome != nil }
        test.clock.advance(milliseconds: 1)
        await outbox.enqueue([try await test.commitPush(event: "newer", policy: newest, group: "g")])
        let row = try #require(try await test.row("older") { $0.state == .cancelled })
        #expect(row.state == .cancelled && row.outcome == "displaced" && row.attempts == 0)
        test.clock.advance(seconds: 10)
        await outbox.enqueue([])
        #expect(try await test.row("newer") { $0.state == .accepted }?.state == .accepted)
        #expect(gateway.sent.map(\.message.event).filter { $0 == "older" || $0 == "newer" } == ["newer"])
        await outbox.close()
    }

    @Test("in quiet hours alerts wait until their end, over a restart, and the newest of a group replaces the older")
    func quietHours() async throws {
        let test = try TestStore()
        try await test.device()
        let first = test.outbox(ScriptedGateway(), definitions: quiet)
        let end = test.clock.wallMilliseconds + 6 * hour
        await first.enqueue([
            try await test.commitPush(event: "e1", policy: .notify, group: "g", lifeMilliseconds: 12 * hour),
            try await test.commitPush(event: "alone", policy: .pushOnly, lifeMilliseconds: 12 * hour),
            try await test.commitPush(event: "short", policy: .notify, lifeMilliseconds: hour),
        ])
        for event in ["e1", "alone"] {
            let row = try #require(try await test.row(event) { $0.outcome != nil })
            #expect(row.state == .due && row.dueAt == end && row.outcome == "quiet hours")
        }
        #expect(try await test.row("short") { $0.state == .cancelled }?.outcome == "quiet hours")
        await first.close()

        // Another process, in the same night.
        test.clock.advance(milliseconds: hour)
        let gateway = ScriptedGateway()
        let second = test.outbox(gateway, definitions: quiet)
        try await second.resume()
        await second.enqueue([
            try await test.commitPush(event: "e2", policy: .notify, group: "g", lifeMilliseconds: 12 * hour),
            try await test.commitPush(event: "critical", policy: .critical),
        ])
        #expect(try await test.row("e1") { $0.state == .cancelled }?.outcome == "displaced")
        _ = try await test.row("critical") { $0.state == .accepted }
        #expect(gateway.sent.map(\.message.event) == ["critical"])
        await second.close()

        test.clock.advance(milliseconds: end - test.clock.wallMilliseconds)
        try await test.outbox(gateway, definitions: quiet).resume()
        for event in ["alone", "e2"] { #expect(try await test.row(event) { $0.state == .accepted }?.attempts == 1) }
        #expect(gateway.sent.map(\.message.event) == ["critical", "alone", "e2"])
    }

    @Test("a device's own time zone decides when its quiet hours are, for each device of one person")
    func deviceZones() async throws {
        let test = try TestStore()
        // Two in the night in Berlin, eight in the evening in New York, and ten in the morning in Tokyo.
        let zones = [("berlin", nil), ("newyork", "America/New_York"), ("nowhere", "No/Where"), ("tokyo", "Asia/Tokyo")]
        for (id, zone) in zones { try await test.device(id: id, token: "token-\(id)", timezone: zone) }
        let gateway = ScriptedGateway()
        let outbox = test.outbox(gateway, definitions: quiet)
        let end = test.clock.wallMilliseconds + 6 * hour
        await outbox.enqueue(
            try await test.commitPushes(event: "e1", policy: .notify, group: "g", devices: zones.map(\.0), lifeMilliseconds: 24 * hour))
        let first = try await test.rows("e1") { $0.allSatisfy { $0.outcome != nil } }
        #expect(first.map(\.state) == [.due, .accepted, .due, .accepted])
        #expect(first.map(\.outcome) == ["quiet hours", "accepted", "quiet hours", "accepted"])
        #expect([first[0], first[2]].allSatisfy { $0.dueAt == end })

        // Three hours later it is night in New York as well: the newer one replaces the older where that waits.
        test.clock.advance(milliseconds: 3 * hour)
        await outbox.enqueue(
            try await test.commitPushes(event: "e2", policy: .notify, group: "g", devices: zones.map(\.0), lifeMilliseconds: 24 * hour))
        let second = try await test.rows("e2") { $0.allSatisfy { $0.outcome != nil } }
        #expect(second.map(\.outcome) == ["quiet hours", "quiet hours", "quiet hours", "accepted"])
        #expect(second.map(\.dueAt).dropLast() == [end, end + 6 * hour, end])
        let replaced = try await test.rows("e1") { $0.allSatisfy { $0.state != .due } }
        #expect(replaced.map(\.outcome) == ["displaced", "accepted", "displaced", "accepted"])

        test.clock.advance(milliseconds: 3 * hour)
        await outbox.enqueue([])
        #expect(
            try await test.rows("e2") { $0[0].state == .accepted && $0[2].state == .accepted }.map(\.state) == [
                .accepted, .due, .accepted, .accepted,
            ])
        test.clock.advance(milliseconds: 6 * hour)
        await outbox.enqueue([])
        #expect(try await test.rows("e2") { $0.allSatisfy { $0.state == .accepted } }.map(\.attempts) == [1, 1, 1, 1])
        await outbox.close()
    }

    @Test("other definitions are in force from when they are changed")
    func change() async throws {
        let test = try TestStore()
        try await test.device()
        let outbox = test.outbox(ScriptedGateway())
        await outbox.enqueue([try await test.commitPush(event: "e1", policy: .notify)])
        _ = try await test.row("e1") { $0.state == .accepted }
        await outbox.change(to: quiet)
        await outbox.enqueue([try await test.commitPush(event: "e2", policy: .notify, lifeMilliseconds: 12 * hour)])
        #expect(try await test.row("e2") { $0.outcome != nil }?.outcome == "quiet hours")
        await outbox.change(to: .empty)
        await outbox.enqueue([try await test.commitPush(event: "e3", policy: .notify)])
        #expect(try await test.row("e3") { $0.state == .accepted }?.state == .accepted)
        await outbox.close()
    }

    @Test("what waits for the morning of one zone waits over a restart, and only what is newer there takes its place")
    func zonesOverRestart() async throws {
        let test = try TestStore()
        try await test.device(id: "berlin", token: "b")
        try await test.device(id: "tokyo", token: "t", timezone: "Asia/Tokyo")
        let first = test.outbox(ScriptedGateway(), definitions: quiet)
        for number in 1...2 {
            let group = "g\(number)"
            await first.enqueue(
                try await test.commitPushes(
                    event: "old\(number)", policy: .notify, group: group, devices: ["berlin"], lifeMilliseconds: 12 * hour))
            #expect(try await test.row("old\(number)") { $0.outcome != nil }?.outcome == "quiet hours")
        }
        await first.close()
        test.clock.advance(seconds: 1)

        let gateway = ScriptedGateway()
        let second = test.outbox(gateway, definitions: quiet)
        try await second.resume()
        for (number, device) in [(1, "tokyo"), (2, "berlin")] {
            await second.enqueue(
                try await test.commitPushes(
                    event: "new\(number)", policy: .notify, group: "g\(number)", devices: [device], lifeMilliseconds: 12 * hour))
            _ = try await test.row("new\(number)") { $0.outcome != nil }
        }
        #expect(try await test.row("old2") { $0.state == .cancelled }?.outcome == "displaced")
        #expect(gateway.sent.map(\.message.event) == ["new1"])
        test.clock.advance(milliseconds: 6 * hour)
        await second.enqueue([])
        _ = try await test.row("new2") { $0.state == .accepted }
        #expect(try await test.row("old1") { $0.state != .due }?.state == .accepted)
        await second.close()
    }

    @Test("several devices of one participant are one alert")
    func devices() async throws {
        let test = try TestStore()
        for device in ["a", "b"] { try await test.device(id: device, token: "token-\(device)") }
        let gateway = ScriptedGateway()
        let outbox = test.outbox(gateway)
        for number in 0..<5 {
            let pushes = try await test.commitPushes(event: "e\(number)", policy: .notify, devices: ["a", "b"])
            // One of them is due later, as where devices are waited for one by one.
            for push in pushes { await outbox.enqueue([push]) }
        }
        for number in 0..<5 {
            #expect(
                try await test.rows("e\(number)") { $0.map(\.state) == [.accepted, .accepted] }.map(\.state) == [.accepted, .accepted])
        }
        await outbox.enqueue(try await test.commitPushes(event: "sixth", policy: .notify, devices: ["a", "b"]))
        #expect(
            try await test.rows("sixth") { $0.map(\.outcome) == ["alert cap", "alert cap"] }.map(\.outcome) == ["alert cap", "alert cap"])
        test.clock.advance(seconds: 10)
        await outbox.enqueue([])
        #expect(try await test.rows("sixth") { $0.map(\.state) == [.accepted, .accepted] }.map(\.state) == [.accepted, .accepted])
        #expect(gateway.sent.count == 12)
        await outbox.close()
    }

    @Test("a device gets one silent push in 20 minutes, the newest")
    func silent() async throws {
        let test = try TestStore()
        for device in ["a", "b"] { try await test.device(id: device, token: "token-\(device)") }
        let gateway = ScriptedGateway()
        let outbox = test.outbox(gateway)
        for number in 0..<4 {
            let devices = number == 0 ? ["a"] : ["a", "b"]
            await outbox.enqueue(
                try await test.commitPushes(event: "e\(number)", policy: .sync, group: "g", devices: devices, lifeMilliseconds: hour))
            _ = try await test.rows("e\(number)") { rows in rows.allSatisfy { $0.outcome != nil } }
            test.clock.advance(seconds: 1)
        }
        #expect(try await test.rows("e1") { $0.map(\.state) == [.cancelled, .accepted] }.map(\.state) == [.cancelled, .accepted])
        #expect(try await test.store.deliveries(event: "e2").map(\.state) == [.cancelled, .cancelled])
        #expect(try await test.store.deliveries(event: "e2").map(\.outcome) == ["displaced", "displaced"])
        #expect(try await test.store.deliveries(event: "e3").map(\.outcome) == ["silent budget", "silent budget"])
        #expect(gateway.sent.map { "\($0.message.event) \($0.target.device)" } == ["e0 a", "e1 b"])
        test.clock.advance(seconds: 20 * 60)
        await outbox.enqueue([])
        #expect(try await test.rows("e3") { $0.map(\.state) == [.accepted, .accepted] }.map(\.state) == [.accepted, .accepted])
        #expect(gateway.sent.count == 4)
        await outbox.close()
    }

    @Test("of 100 silent events in 10 minutes a device gets the first at once and the newest 20 minutes later", arguments: [nil, "state"])
    func silentBurst(group: String?) async throws {
        let test = try TestStore()
        try await test.device()
        let gateway = ScriptedGateway()
        let outbox = test.outbox(gateway)
        var sentAt: [Int64] = []
        func noteSent() {
            while sentAt.count < gateway.sent.count { sentAt.append(test.clock.wallMilliseconds) }
        }
        for number in 0..<100 {
            let event = "e\(number)"
            await outbox.enqueue([try await test.commitPush(event: event, policy: .sync, group: group, lifeMilliseconds: hour)])
            #expect(try await test.row(event) { $0.outcome != nil }?.state == (number == 0 ? .accepted : .due))
            noteSent()
            test.clock.advance(seconds: 6)
        }
        // 10 minutes are over; each minute of the next hour is looked at.
        for _ in 0..<60 {
            await outbox.enqueue([])
            if sentAt.count == 1, test.clock.wallMilliseconds >= sentAt[0] + 20 * 60_000 {
                _ = try await test.row("e99") { $0.state == .accepted }
            }
            noteSent()
            test.clock.advance(seconds: 60)
        }
        #expect(gateway.sent.map(\.message.event) == ["e0", "e99"], "the newest state, and no other")
        #expect(zip(sentAt, sentAt.dropFirst()).allSatisfy { $1 - $0 >= 20 * 60_000 })
        for number in 1..<99 {
            let row = try await test.row("e\(number)") { $0.state == .cancelled }
            #expect(row?.state == .cancelled && row?.outcome == "displaced" && row?.attempts == 0)
        }
        await outbox.close()
    }

    @Test("a silent push is not needed beside an alert of its group")
    func alertPending() async throws {
        let test = try TestStore()
        try await test.device()
        let gateway = ScriptedGateway()
        await test.outbox(gateway).enqueue([
            try await test.commitPush(event: "silent", policy: .sync, group: "g"),
            try await test.commitPush(event: "alert", policy: .notify, group: "g"),
        ])
        #expect(try await test.row("silent") { $0.state == .cancelled }?.outcome == "alert pending")
        _ = try await test.row("alert") { $0.state == .accepted }
        #expect(gateway.sent.map(\.message.event) == ["alert"])
    }

    @Test("a receipt ends what waits")
    func receipt() async throws {
        let test = try TestStore()
        try await test.device()
        let gateway = ScriptedGateway()
        let outbox = test.outbox(gateway, definitions: quiet)
        await outbox.enqueue([try await test.commitPush(policy: .notify, lifeMilliseconds: 12 * hour)])
        _ = try await test.row { $0.outcome != nil }
        await outbox.drop(try await test.store.cancelDeliveries(event: "e1", [PushCancellation(user: "u")]))
        test.clock.advance(milliseconds: 7 * hour)
        await outbox.enqueue([try await test.commitPush(event: "e2", policy: .notify)])
        _ = try await test.row("e2") { $0.state == .accepted }
        #expect(try await test.row { _ in true }?.outcome == "receipt")
        #expect(gateway.sent.map(\.message.event) == ["e2"])
        await outbox.close()
    }
}
