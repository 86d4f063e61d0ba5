import HubCore
import HubDelivery
import HubTesting
import OutboxTesting
import Synchronization
import Testing

@testable import HubPush
@testable import HubOutbox

/// A gateway behind a lane's real pace, which answers at once: that it took the push, or that it is down.
private final class LaneGateway: PushGateway {
    private struct State {
        var pace: LaneAdmission
        var isDown = false
        var sent: [String] = []
    }
    private let state: Mutex<State>
    private let clock: ManualClock

    init(perMinute: Int?, clock: ManualClock) {
        self.clock = clock
        state = Mutex(State(pace: LaneAdmission(perMinute: perMinute, hasDeviceBuckets: false)))
    }

    /// Events in the order of sending.
    var sent: [String] { state.withLock { $0.sent } }
    func setDown(_ isDown: Bool) { state.withLock { $0.isDown = isDown } }

    func room(on route: PushRoute) -> PushRoom {
        state.withLock { $0.pace.room(isUnproven: false, window: 200, now: clock.monotonicNanoseconds) }
    }

    func admit(_ candidates: [PushCandidate]) -> [PushAdmission] {
        state.withLock { $0.pace.admit(candidates, window: 200, now: clock.monotonicNanoseconds) }
    }

    func send(_ message: PushMessage, to target: PushTarget, completion: @escaping @Sendable (PushOutcome) -> Void) {
        let outcome = state.withLock { state -> PushOutcome in
            state.sent.append(message.event)
            let outcome: PushOutcome =
                state.isDown ? .retry(after: nil, reason: RetryCause.unavailable.reason("http 503")) : .accepted(providerID: "x")
            let wasUnproven = state.pace.entered(target)
            state.pace.left(wasUnproven: wasUnproven, isBad: nil)
            _ = state.pace.note(outcome, target, now: clock.monotonicNanoseconds)
            return outcome
        }
        completion(outcome)
    }
}

@Suite("Outbox behind a lane's pace")
struct PacedOutboxTests {
    /// Lets time pass in steps until the condition holds.
    private func pass(
        _ test: TestStore, _ outbox: Outbox, milliseconds: Int64 = 250, steps: Int = 400, until isDone: () -> Bool
    ) async throws {
        for _ in 0..<steps where !isDone() {
            test.clock.advance(milliseconds: milliseconds)
            await outbox.enqueue([])
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    @Test("bulk over a small quota goes out evenly and completely, and a critical push does not wait behind it")
    func quota() async throws {
        let test = try TestStore()
        try await test.device()
        let gateway = LaneGateway(perMinute: 600, clock: test.clock)
        let outbox = test.outbox(gateway)
        var pushes: [PushRecord] = []
        // One alert each for as many people as that, so that nobody's alert limit matters.
        for number in 0..<200 {
            try await test.device(user: "u\(number)", token: "t\(number)")
            pushes.append(try await test.commitPush(event: "n\(number)", policy: .notify, user: "u\(number)"))
        }
        await outbox.enqueue(pushes)
        #expect(await eventually { gateway.sent.count == 60 })
        await outbox.enqueue([try await test.commitPush(event: "critical")])
        #expect(await eventually { gateway.sent.last == "critical" })
        #expect(gateway.sent.count == 61)

        let began = test.clock.wallMilliseconds
        try await pass(test, outbox) { gateway.sent.count == 201 }
        #expect(gateway.sent.count == 201 && Set(gateway.sent).count == 201)
        // The other 140 at no more than eight a second.
        #expect(test.clock.wallMilliseconds - began >= 17_000)
        #expect(try await test.row("n199") { $0.state == .accepted }?.attempts == 1)
        await outbox.close()
    }

    @Test("in an outage pushes wait with no attempt counted while single ones are tried, and all go out after it")
    func outage() async throws {
        let test = try TestStore()
        try await test.device()
        let gateway = LaneGateway(perMinute: nil, clock: test.clock)
        let outbox = test.outbox(gateway)
        gateway.setDown(true)
        var first: [PushRecord] = []
        for number in 0..<10 { first.append(try await test.commitPush(event: "first\(number)")) }
        await outbox.enqueue(first)
        #expect(await eventually { gateway.sent.count == 10 })

        var later: [PushRecord] = []
        for number in 0..<100 { later.append(try await test.commitPush(event: "later\(number)")) }
        await outbox.enqueue(later)
        try await pass(test, outbox, milliseconds: 500, steps: 120) { false }
        // After 5, 10 and 20 seconds, and perhaps 40.
        #expect((12...15).contains(gateway.sent.count))
        let untouched = try #require(try await test.store.deliveries(event: "later99").first)
        #expect(untouched.state == .due && untouched.attempts == 0)

        gateway.setDown(false)
        let failed = gateway.sent.count
        try await pass(test, outbox) { gateway.sent.count == failed + 110 }
        for event in ["first0", "first9", "later0", "later99"] {
            #expect(try await test.row(event) { $0.state == .accepted }?.state == .accepted)
        }
        #expect(gateway.sent.count == failed + 110)
        await outbox.close()
    }
}
