import Foundation
import HubCore
import HubDelivery
import HubStorage
import HubTesting
import Logging
import Synchronization

@testable import HubServer

/// A gateway that answers as scripted, in the order of sending, and remembers what it was asked to send.
final class ScriptedGateway: PushGateway {
    struct Sent: Sendable {
        let message: PushMessage
        let target: PushTarget
    }

    private let state = Mutex((script: [PushOutcome](), sent: [Sent](), held: [@Sendable (PushOutcome) -> Void]()))
    /// Answers nothing until `release`.
    private let holds: Bool

    init(_ script: [PushOutcome] = [], holds: Bool = false) {
        self.holds = holds
        state.withLock { $0.script = script }
    }

    var sent: [Sent] { state.withLock { $0.sent } }

    func send(_ message: PushMessage, to target: PushTarget, completion: @escaping @Sendable (PushOutcome) -> Void) {
        let outcome = state.withLock { state -> PushOutcome? in
            state.sent.append(Sent(message: message, target: target))
            if holds {
                state.held.append(completion)
                return nil
            }
            return state.script.isEmpty ? .accepted(providerID: "p\(state.sent.count)") : state.script.removeFirst()
        }
        if let outcome { completion(outcome) }
    }
}

/// A store in a folder of its own, which goes with it.
final class TestStore {
    let folder: URL
    let clock: ManualClock
    let store: SQLiteStore

    init(clock: ManualClock = ManualClock()) throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("tandem-\(UUID().uuidString)")
        self.clock = clock
        store = try SQLiteStore(path: folder.appendingPathComponent("t.db").path, synchronous: .normal, time: clock)
    }

    deinit {
        do { try FileManager.default.removeItem(at: folder) } catch { print("left behind: \(folder.path)") }
    }

    func outbox(_ gateway: any PushGateway) -> Outbox {
        Outbox(gateway: gateway, directory: store, store: store, time: clock, logger: Logger(label: "test"))
    }

    func device(user: String = "u", token: String? = "token-of-u", notifications: Bool = true) async throws {
        _ = try await store.putDevice(
            Device(
                app: "1", user: user, id: "d", platform: .android, provider: .fcm, token: token, environment: .production,
                notifications: notifications, registeredAt: clock.wallMilliseconds))
    }

    /// Commits one event with one push that is due now, or after the delay.
    func commitPush(
        event: String = "e1", user: String = "u", lifeMilliseconds: Int64 = 600_000, delayMilliseconds: Int64 = 0
    ) async throws -> DeliveryRecord {
        let now = clock.wallMilliseconds
        let message = PushMessage(
            nid: "nid-\(event)", event: event, kind: .alert, title: "t", body: "b", expiresAt: now + lifeMilliseconds, committedAt: now)
        let delivery = DeliveryRecord(
            nid: "nid-\(event)", event: event, app: "1", user: user, device: "d", state: .due, reason: "absent",
            dueAt: now + delayMilliseconds, message: message)
        let record = EventRecord(
            id: event, app: "1", channel: "presence-quiz-1", name: "n", data: "{}", policy: .critical, committedAt: now,
            expiresAt: now + lifeMilliseconds)
        _ = try await store.commit([(record, [delivery])])
        return delivery
    }

    /// The event's one row once it is as wanted; whatever it is after the time limit.
    func row(_ event: String = "e1", until isDone: (DeliveryRecord) -> Bool) async throws -> DeliveryRecord? {
        let end = ContinuousClock.now + .seconds(60)
        while true {
            let row = try await store.deliveries(event: event).first
            if let row, isDone(row) { return row }
            if ContinuousClock.now > end { return row }
            try await Task.sleep(for: .milliseconds(5))
        }
    }
}
