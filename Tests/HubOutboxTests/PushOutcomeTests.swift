import HubCore
import HubDelivery
import HubTesting
import OutboxTesting
import Synchronization
import Testing

@testable import HubOutbox

@Suite("What the outbox makes of outcomes", .timeLimit(.minutes(10 * SlowBuild.factor)))
struct PushOutcomeTests {
    private func device(_ test: TestStore, provider: PushProvider = .apns, environment: APNsEnvironment = .production) async throws {
        _ = try await test.store.putDevice(
            Device(
                app: "1", user: "u", id: "d", platform: .ios, provider: provider, token: "ab12", environment: environment,
                registeredAt: test.clock.wallMilliseconds))
    }

    private func stored(_ test: TestStore) async throws -> Device {
        try #require(try await test.store.device(app: "1", user: "u", id: "d"))
    }

    @Test("the environment a token turned out to belong to is written down, and used from then on")
    func environment() async throws {
        let test = try TestStore()
        try await device(test)
        let gateway = ScriptedGateway([.accepted(providerID: "p", environment: .sandbox)])
        let outbox = test.outbox(gateway)
        await outbox.enqueue([try await test.commitPush()])
        _ = try await test.row { $0.state == .accepted }
        #expect(try await stored(test).environment == .sandbox)
        #expect(try await stored(test).lastAcceptedAt == test.clock.wallMilliseconds)
        await outbox.enqueue([try await test.commitPush(event: "e2")])
        _ = try await test.row("e2") { $0.state == .accepted }
        #expect(gateway.sent.map(\.target.environment) == [.production, .sandbox])
        #expect(gateway.sent.map(\.target.isProven) == [false, true])
    }

    @Test("that a token was accepted is written down at first and then once a day, not for every push")
    func onceADay() async throws {
        let test = try TestStore()
        try await device(test)
        let outbox = test.outbox(ScriptedGateway())
        let start = test.clock.wallMilliseconds
        var noted: [Int64?] = []
        for number in 0..<4 {
            await outbox.enqueue([try await test.commitPush(event: "e\(number)")])
            _ = try await test.row("e\(number)") { $0.state == .accepted }
            noted.append(try await stored(test).lastAcceptedAt.map { $0 - start })
            test.clock.advance(seconds: 9 * 3600)
        }
        #expect(noted == [0, 0, 0, 27 * 3600 * 1000])
    }

    @Test("a token that is dead for all this answer shows is kept until the gateway is sure")
    func uncertain() async throws {
        let test = try TestStore()
        try await device(test)
        let outbox = test.outbox(ScriptedGateway([.dead(reason: "BadDeviceToken", since: nil, isCertain: false)]))
        await outbox.enqueue([try await test.commitPush()])
        let row = try #require(try await test.row { $0.state == .failed })
        #expect(row.outcome == "BadDeviceToken")
        #expect(try await stored(test).token == "ab12")
        test.clock.advance(seconds: 5)
        await outbox.remove("ab12", app: "1", of: .apns, deadSince: test.clock.wallMilliseconds - 1)
        #expect(try await stored(test).token == nil)
    }

    @Test(
        "410 removes the token it was about, and no registration after it",
        arguments: [
            (Int64(1000), true), (0, false), (-1000, false),
        ])
    func timestamps(after: Int64, isRemoved: Bool) async throws {
        let test = try TestStore()
        try await device(test)
        let registered = try await stored(test).registeredAt
        test.clock.advance(seconds: 10)
        let outbox = test.outbox(ScriptedGateway([.dead(reason: "Unregistered", since: registered + after)]))
        await outbox.enqueue([try await test.commitPush()])
        _ = try await test.row { $0.state == .failed }
        #expect(try await (stored(test).token == nil) == isRemoved)
    }

    @Test("410 without a timestamp: the token counts as expired")
    func noTimestamp() async throws {
        let test = try TestStore()
        try await device(test)
        let outbox = test.outbox(ScriptedGateway([.dead(reason: "ExpiredToken", since: nil)]))
        await outbox.enqueue([try await test.commitPush()])
        _ = try await test.row { $0.state == .failed }
        #expect(try await stored(test).token == nil)
    }

    @Test("a token replaced while the push was under way is kept")
    func replaced() async throws {
        let test = try TestStore()
        try await device(test)
        let gateway = HeldGateway()
        let outbox = test.outbox(gateway)
        await outbox.enqueue([try await test.commitPush()])
        #expect(await eventually { gateway.isAsked })
        test.clock.advance(seconds: 1)
        _ = try await test.store.putDevice(
            Device(
                app: "1", user: "u", id: "d", platform: .ios, provider: .apns, token: "cd34", environment: .production,
                registeredAt: test.clock.wallMilliseconds))
        gateway.answer(.dead(reason: "Unregistered", since: test.clock.wallMilliseconds + 1000))
        _ = try await test.row { $0.state == .failed }
        #expect(try await stored(test).token == "cd34")
    }

    @Test("what waits for a device whose token died ends without an attempt")
    func cancelled() async throws {
        let test = try TestStore()
        try await device(test)
        let gateway = ScriptedGateway([.dead(reason: "Unregistered", since: nil)])
        let outbox = test.outbox(gateway)
        let later = try await test.commitPush(event: "e2", delayMilliseconds: 1)
        await outbox.enqueue([try await test.commitPush()])
        _ = try await test.row { $0.state == .failed }
        test.clock.advance(seconds: 1)
        await outbox.enqueue([later])
        let row = try #require(try await test.row("e2") { $0.state == .undeliverable })
        #expect(row.outcome == "no token" && row.attempts <= 1)
        #expect(gateway.sent.count == 1)
    }
}

/// Answers when it is told to.
private final class HeldGateway: PushGateway {
    private let held = Mutex<(@Sendable (PushOutcome) -> Void)?>(nil)

    var isAsked: Bool { held.withLock { $0 != nil } }

    func send(_ message: PushMessage, to target: PushTarget, completion: @escaping @Sendable (PushOutcome) -> Void) {
        held.withLock { $0 = completion }
    }

    func answer(_ outcome: PushOutcome) { held.withLock { $0 }?(outcome) }
}
