import HubDefinitions
import HubDelivery
import HubTesting
import OutboxTesting
import Synchronization
import Testing

@testable import HubOutbox

/// A gateway whose lanes let out as many as the test says, and accept what they are sent.
private final class PacedGateway: PushGateway {
    private struct State {
        /// Pushes that may still go out, by provider; without an entry: any number.
        var budget: [PushProvider: Int] = [:]
        var again: Duration?
        var throttled: [String: Duration] = [:]
        var sent: [(message: PushMessage, target: PushTarget)] = []
        var asked = 0
        var askedAbout = 0
        var held: [@Sendable (PushOutcome) -> Void]? = nil
    }
    private let state = Mutex(State())

    init(_ budget: [PushProvider: Int] = [:], again: Duration? = nil, throttled: [String: Duration] = [:], holds: Bool = false) {
        state.withLock { state in
            (state.budget, state.again, state.throttled) = (budget, again, throttled)
            if holds { state.held = [] }
        }
    }

    var sent: [PushMessage] { state.withLock { $0.sent.map(\.message) } }
    var tokens: [String] { state.withLock { $0.sent.map(\.target.token) } }
    /// How often it was asked, about however many pushes.
    var asked: Int { state.withLock { $0.asked } }

    /// About how many pushes it was asked.
    var askedAbout: Int { state.withLock { $0.askedAbout } }

    func allow(_ count: Int?, on provider: PushProvider) { state.withLock { $0.budget[provider] = count } }

    /// Accepts what it has not answered yet.
    func release() {
        let held = state.withLock { state in
            defer { state.held = state.held == nil ? nil : [] }
            return state.held ?? []
        }
        for completion in held { completion(.accepted(providerID: "x")) }
    }

    func room(on route: PushRoute) -> PushRoom {
        state.withLock { state in
            state.asked += 1
            guard let budget = state.budget[route.provider] else { return .unlimited }
            return PushRoom(count: budget, urgent: budget, again: budget == 0 ? state.again : nil)
        }
    }

    func admit(_ candidates: [PushCandidate]) -> [PushAdmission] {
        state.withLock { state in
            state.asked += 1
            state.askedAbout += candidates.count
            return candidates.map { candidate in
                if let wait = state.throttled.removeValue(forKey: candidate.target.token) { return .deviceWait(wait) }
                let provider = candidate.target.provider
                guard let budget = state.budget[provider] else { return .go }
                guard budget > 0 else { return .wait(again: state.again) }
                state.budget[provider] = budget - 1
                return .go
            }
        }
    }

    func send(_ message: PushMessage, to target: PushTarget, completion: @escaping @Sendable (PushOutcome) -> Void) {
        let isHeld = state.withLock { state in
            state.sent.append((message, target))
            if state.held == nil { return false }
            state.held?.append(completion)
            return true
        }
        if !isHeld { completion(.accepted(providerID: "x")) }
    }
}

/// The outbox's handling of pushes whose lane has no room.
@Suite("Outbox lanes")
struct OutboxLanesTests {
    private func device(_ test: TestStore, user: String, provider: PushProvider) async throws {
        _ = try await test.store.putDevice(
            Device(
                app: "1", user: user, id: "d", platform: provider == .apns ? .ios : .android, provider: provider, token: "token-of-\(user)",
                environment: .production, notifications: true, registeredAt: test.clock.wallMilliseconds))
    }

    @Test("a lane without room keeps its pushes waiting with their rows untouched, and holds up no other lane")
    func waits() async throws {
        let test = try TestStore()
        try await device(test, user: "u", provider: .fcm)
        try await device(test, user: "v", provider: .apns)
        let gateway = PacedGateway([.fcm: 0], again: .seconds(5))
        let outbox = test.outbox(gateway)
        // More than may be in flight, so that they would fill every place if they took one.
        var pushes: [PushRecord] = []
        for number in 0..<2_100 { pushes.append(try await test.commitPush(event: "f\(number)")) }
        await outbox.enqueue(pushes)
        await outbox.enqueue([try await test.commitPush(event: "other", user: "v")])
        _ = try await test.row("other") { $0.state == .accepted }
        #expect(gateway.tokens == ["token-of-v"])
        #expect(await eventually { await outbox.sending == 0 })
        let row = try #require(try await test.store.deliveries(event: "f7").first)
        #expect(row.state == .due && row.attempts == 0 && row.outcome == nil && row.dueAt == pushes[7].dueAt)

        gateway.allow(nil, on: .fcm)
        test.clock.advance(seconds: 6)
        await outbox.enqueue([])
        #expect(await eventually { gateway.sent.count == 2_101 })
        #expect(try await test.row("f7") { $0.state == .accepted }?.attempts == 1)
        await outbox.close()
    }

    @Test("while a lane has no room nobody asks it again and again")
    func noBusyWaiting() async throws {
        let test = try TestStore()
        try await device(test, user: "u", provider: .fcm)
        let gateway = PacedGateway([.fcm: 0], again: .seconds(60))
        let outbox = test.outbox(gateway)
        var pushes: [PushRecord] = []
        for number in 0..<600 { pushes.append(try await test.commitPush(event: "f\(number)", policy: .notify, lifeMilliseconds: 900_000)) }
        await outbox.enqueue(pushes)
        #expect(await eventually { gateway.asked > 0 })
        try await Task.sleep(for: .milliseconds(300))
        // Once for each batch that was taken up.
        #expect(gateway.asked <= 4)
        await outbox.close()
    }

    @Test("a lane that waits for the end of a push is asked again when one has ended")
    func ends() async throws {
        let test = try TestStore()
        try await device(test, user: "u", provider: .fcm)
        let gateway = PacedGateway([.fcm: 1], holds: true)
        let outbox = test.outbox(gateway)
        await outbox.enqueue([try await test.commitPush(event: "a"), try await test.commitPush(event: "b")])
        #expect(await eventually { gateway.sent.count == 1 })
        gateway.allow(1, on: .fcm)
        gateway.release()
        #expect(await eventually { gateway.sent.count == 2 })
        gateway.release()
        _ = try await test.row("b") { $0.state == .accepted }
        await outbox.close()
    }

    @Test("when room comes back critical pushes go first, then those that expire first")
    func order() async throws {
        let test = try TestStore()
        try await device(test, user: "u", provider: .fcm)
        let gateway = PacedGateway([.fcm: 0])
        let outbox = test.outbox(gateway)
        await outbox.enqueue([
            try await test.commitPush(event: "long", policy: .pushOnly, lifeMilliseconds: 900_000),
            try await test.commitPush(event: "brief", policy: .notify, lifeMilliseconds: 300_000),
            try await test.commitPush(event: "critical", policy: .critical, lifeMilliseconds: 600_000),
            try await test.commitPush(event: "timer", policy: .notify, lifeMilliseconds: 30_000),
        ])
        #expect(await eventually { gateway.asked > 0 })
        for count in 1...4 {
            gateway.allow(1, on: .fcm)
            await outbox.enqueue([])
            #expect(await eventually { gateway.sent.count == count })
        }
        #expect(gateway.sent.map(\.event) == ["timer", "critical", "brief", "long"])
        await outbox.close()
    }

    @Test("what expires while its lane has no room ends as expired, without an attempt")
    func expires() async throws {
        let gateway = PacedGateway([.fcm: 0], again: .seconds(600))
        let row = try await lived(30, at: gateway)
        #expect(row.state == .expired && row.attempts == 0 && row.outcome == "expired" && gateway.sent.isEmpty)
    }

    @Test("a device that has had enough waits alone, and its row is as it was")
    func deviceWaits() async throws {
        let test = try TestStore()
        try await device(test, user: "u", provider: .fcm)
        try await device(test, user: "v", provider: .fcm)
        let gateway = PacedGateway(throttled: ["token-of-u": .seconds(10)])
        let outbox = test.outbox(gateway)
        await outbox.enqueue([try await test.commitPush(event: "e1"), try await test.commitPush(event: "e2", user: "v")])
        _ = try await test.row("e2") { $0.state == .accepted }
        #expect(gateway.tokens == ["token-of-v"])
        #expect(try await test.store.deliveries(event: "e1").first?.attempts == 0)
        test.clock.advance(seconds: 11)
        await outbox.enqueue([])
        #expect(try await test.row { $0.state == .accepted }?.attempts == 1)
        await outbox.close()
    }

    @Test("a push ends with its life, also when its device's turn would come later")
    func deviceWaitsTooLong() async throws {
        let gateway = PacedGateway(throttled: ["token-of-u": .seconds(100)])
        let row = try await lived(31, at: gateway)
        #expect(row.state == .expired && row.attempts == 0 && gateway.sent.isEmpty)
    }

    /// A push with a life of 30 s, after so many seconds at a gateway that takes nothing.
    private func lived(_ seconds: Int64, at gateway: PacedGateway) async throws -> PushRecord {
        let test = try TestStore()
        try await device(test, user: "u", provider: .fcm)
        let outbox = test.outbox(gateway)
        await outbox.enqueue([try await test.commitPush(lifeMilliseconds: 30_000)])
        #expect(await eventually { gateway.asked > 0 })
        test.clock.advance(seconds: seconds)
        await outbox.enqueue([])
        let row = try #require(try await test.row { $0.state == .expired })
        await outbox.close()
        return row
    }

    @Test("what is cancelled while it waits for its lane does not go out")
    func cancelled() async throws {
        let test = try TestStore()
        try await device(test, user: "u", provider: .fcm)
        let gateway = PacedGateway([.fcm: 0])
        let outbox = test.outbox(gateway)
        let first = try await test.commitPush(event: "a")
        await outbox.enqueue([first, try await test.commitPush(event: "b")])
        #expect(await eventually { gateway.asked > 0 })
        await outbox.drop([first])
        gateway.allow(nil, on: .fcm)
        await outbox.enqueue([])
        _ = try await test.row("b") { $0.state == .accepted }
        #expect(gateway.sent.map(\.event) == ["b"])
        await outbox.close()
    }

    @Test(
        "what is decided for a lane that others wait for waits behind them, and nobody is asked about it",
        arguments: [Policy.critical, .notify])
    func crowded(policy: Policy) async throws {
        let test = try TestStore()
        try await test.device()
        let gateway = PacedGateway([.fcm: 0])
        let outbox = test.outbox(gateway)
        await outbox.enqueue([try await test.commitPush(event: "first", policy: policy)])
        #expect(await eventually { gateway.askedAbout == 1 })
        var pushes: [PushRecord] = []
        for number in 0..<20 {
            // Somebody of their own each: nobody's alerts are to become too many.
            try await test.device(user: "u\(number)", token: "token-of-u\(number)")
            var push = try await test.commitPush(event: "n\(number)", policy: policy, user: "u\(number)")
            push.route = PushRoute(app: "1", provider: .fcm, isUnproven: true)
            pushes.append(push)
        }
        await outbox.enqueue(pushes)
        #expect(await eventuallyParked(21, in: outbox))
        #expect(gateway.askedAbout == 1)
        gateway.allow(nil, on: .fcm)
        await outbox.enqueue([])
        #expect(await eventually { gateway.sent.count == 21 })
        #expect(gateway.sent.map(\.event) == ["first"] + pushes.map(\.event))
        await outbox.close()
    }

    private func eventuallyParked(_ count: Int, in outbox: Outbox) async -> Bool {
        await eventually { await outbox.flow.queue.parkedCount == count }
    }

    @Test("a push goes where its device is when it is sent, and not where it was when it was decided")
    func movedSince() async throws {
        let test = try TestStore()
        try await test.device()
        _ = try await test.store.putDevice(
            Device(
                app: "1", user: "i", id: "d", platform: .ios, provider: .apns, token: "token-of-i", environment: .production,
                registeredAt: test.clock.wallMilliseconds))
        let gateway = PacedGateway([.apns: 0])
        let outbox = test.outbox(gateway)
        await outbox.enqueue([try await test.commitPush(event: "first", user: "i")])
        #expect(await eventuallyParked(1, in: outbox))
        var moved = try await test.commitPush(event: "moved")
        moved.route = PushRoute(app: "1", provider: .apns, environment: .production, isUnproven: true)
        await outbox.enqueue([moved])
        #expect(await eventuallyParked(2, in: outbox))
        gateway.allow(nil, on: .apns)
        await outbox.enqueue([])
        #expect(await eventually { gateway.sent.count == 2 })
        #expect(Set(gateway.tokens) == ["token-of-i", "token-of-u"])
        await outbox.close()
    }

    @Test("critical pushes that come when thousands of others fall due pass them")
    func criticalFirst() async throws {
        let test = try TestStore()
        try await test.device()
        // Answers are slow: what is handed over later waits longer.
        let gateway = PacedGateway(holds: true)
        let outbox = test.outbox(gateway)
        var pushes: [PushRecord] = []
        for number in 0..<(2 * PushFlow.leaseMax) {
            pushes.append(try await test.commitPush(event: "n\(number)", policy: .notify, delayMilliseconds: 30_000))
        }
        pushes.append(try await test.commitPush(event: "critical", policy: .critical, delayMilliseconds: 30_000))
        await outbox.enqueue(pushes)
        test.clock.advance(seconds: 30)
        await outbox.enqueue([])
        #expect(await eventually { !gateway.sent.isEmpty })
        #expect(gateway.sent.first?.event == "critical")
        await outbox.close()
    }
}
