import HubCore
import HubDelivery
import HubTesting
import OutboxTesting
import Synchronization
import Testing

@testable import HubOutbox

@Suite("Pushes to people who have just come back", .serialized)
struct DepartingTests {
    /// Asks at the departure as the lanes do, some time after the push was handed over.
    private final class LateGateway: PushGateway {
        private let state = Mutex((waiting: [@Sendable () -> Void](), left: 0))
        var left: Int { state.withLock { $0.left } }
        var waiting: Int { state.withLock { $0.waiting.count } }

        func send(_ message: PushMessage, to target: PushTarget, completion: @escaping @Sendable (PushOutcome) -> Void) {
            send(message, to: target, departs: { true }, completion: completion)
        }

        func send(
            _ message: PushMessage, to target: PushTarget, departs: @escaping @Sendable () -> Bool,
            completion: @escaping @Sendable (PushOutcome) -> Void
        ) {
            state.withLock { state in
                state.waiting.append { [self] in
                    guard departs() else { return completion(.retry(after: nil, reason: "lane: the request was not to go any more")) }
                    self.state.withLock { $0.left += 1 }
                    completion(.accepted(providerID: "p"))
                }
            }
        }

        func leave() {
            let waiting = state.withLock { state in
                defer { state.waiting = [] }
                return state.waiting
            }
            for push in waiting { push() }
        }
    }

    @Test("one that waits in its lane when its person comes back is kept until the grace is over, and counts no attempt")
    func kept() async throws {
        let test = try TestStore()
        try await test.device()
        let gateway = LateGateway()
        let outbox = test.outbox(gateway)
        await outbox.enqueue([try await test.commitPush()])
        #expect(await eventually { gateway.waiting == 1 })
        let now = Int64(test.clock.monotonicNanoseconds / 1_000_000)
        outbox.comebacks.withLock { $0.replays(["e1"], app: "1", user: "u", now: now) }
        gateway.leave()
        let kept = try #require(try await test.row { $0.state == .retry })
        #expect(kept.outcome == "came back" && kept.attempts == 0 && kept.dueAt == test.clock.wallMilliseconds + 2000 && gateway.left == 0)
        test.clock.advance(milliseconds: 2001)
        await outbox.enqueue([])
        #expect(await eventually { gateway.waiting == 1 })
        gateway.leave()
        #expect(try await test.row { $0.state == .accepted }?.attempts == 1 && gateway.left == 1)
        await outbox.close()
    }

    @Test("one whose receipt has come does not leave")
    func read() async throws {
        let test = try TestStore()
        try await test.device()
        let gateway = LateGateway()
        let outbox = test.outbox(gateway)
        await outbox.enqueue([try await test.commitPush()])
        #expect(await eventually { gateway.waiting == 1 })
        _ = try await test.store.cancelDeliveries(event: "e1", [PushCancellation(user: "u")])
        outbox.comebacks.withLock { $0.confirmed("e1", user: "u", device: nil, now: 1000) }
        gateway.leave()
        let ended = try #require(try await test.row { $0.state == .cancelled })
        #expect(ended.state == .cancelled && ended.outcome == "receipt" && gateway.left == 0)
        await outbox.close()
    }

    @Test("one that would come too late otherwise is not kept")
    func shortLife() async throws {
        let test = try TestStore()
        try await test.device()
        let gateway = LateGateway()
        let outbox = test.outbox(gateway)
        outbox.comebacks.withLock { $0.replays(["e1"], app: "1", user: "u", now: 1000) }
        await outbox.enqueue([try await test.commitPush(lifeMilliseconds: 6000)])
        #expect(await eventually { gateway.waiting == 1 })
        gateway.leave()
        #expect(gateway.left == 1)
        await outbox.close()
    }
}
