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

    /// Answers what is held.
    func release(_ outcome: PushOutcome) {
        let held = state.withLock { state in
            defer { state.held = [] }
            return state.held
        }
        for completion in held { completion(outcome) }
    }
}

/// A store in a folder of its own, which goes with it.
final class TestStore {
    let folder: URL
    let clock: ManualClock
    private(set) var store: SQLiteStore

    init(clock: ManualClock = ManualClock()) throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("tandem-\(UUID().uuidString)")
        self.clock = clock
        store = try SQLiteStore(path: folder.appendingPathComponent("t.db").path, synchronous: .normal, time: clock)
    }

    deinit {
        do { try FileManager.default.removeItem(at: folder) } catch { print("left behind: \(folder.path)") }
    }

    /// Milliseconds since the clock began.
    var elapsed: Int64 { Int64(clock.monotonicNanoseconds / 1_000_000) - 1_000 }

    /// What another process finds that starts now.
    func reopen() async throws {
        try await store.close()
        store = try SQLiteStore(path: folder.appendingPathComponent("t.db").path, synchronous: .normal, time: clock)
    }

    func outbox(_ gateway: any PushGateway, definitions: DefinitionSet = .empty) -> Outbox {
        Outbox(
            gateway: gateway, directory: store, store: store, definitions: definitions, time: clock, logger: Logger(label: "test"))
    }

    func device(
        user: String = "u", id: String = "d", token: String? = "token-of-u", timezone: String? = nil, notifications: Bool = true
    ) async throws {
        _ = try await store.putDevice(
            Device(
                app: "1", user: user, id: id, platform: .android, provider: .fcm, token: token, environment: .production,
                timezone: timezone, notifications: notifications, registeredAt: clock.wallMilliseconds))
    }

    /// Commits one event with one push that is due now, or after the delay.
    func commitPush(
        event: String = "e1", policy: Policy = .critical, group: String? = nil, user: String = "u", lifeMilliseconds: Int64 = 600_000,
        delayMilliseconds: Int64 = 0
    ) async throws -> PushRecord {
        let pushes = try await commitPushes(
            event: event, policy: policy, group: group, user: user, devices: ["d"], lifeMilliseconds: lifeMilliseconds,
            delayMilliseconds: delayMilliseconds)
        return pushes[0]
    }

    /// Commits one event with a push for each device.
    func commitPushes(
        event: String, policy: Policy, group: String? = nil, user: String = "u", devices: [String], lifeMilliseconds: Int64 = 600_000,
        delayMilliseconds: Int64 = 0
    ) async throws -> [PushRecord] {
        let now = clock.wallMilliseconds
        let message = PushMessage(
            nid: "nid-\(event)", event: event, kind: policy == .sync ? .silent : .alert, policy: policy, title: "t", body: "b",
            group: group,
            expiresAt: now + lifeMilliseconds, committedAt: now)
        let deliveries = devices.map { device in
            PushRecord(
                nid: "nid-\(event)", event: event, app: "1", user: user, device: device, state: .due, reason: "absent",
                dueAt: now + delayMilliseconds, message: message)
        }
        let record = EventRecord(
            id: event, app: "1", channel: "presence-quiz-1", name: "n", data: "{}", policy: policy, committedAt: now,
            expiresAt: now + lifeMilliseconds)
        _ = try await store.commit([EventCommit(record, deliveries)])
        return deliveries
    }

    /// The event's one row once it is as wanted; whatever it is after the time limit.
    func row(_ event: String = "e1", until isDone: (PushRecord) -> Bool) async throws -> PushRecord? {
        try await rows(event) { $0.first.map(isDone) ?? false }.first
    }

    /// The event's rows by device once they are as wanted; whatever they are after the time limit.
    func rows(_ event: String, until isDone: ([PushRecord]) -> Bool) async throws -> [PushRecord] {
        let end = ContinuousClock.now + .seconds(60)
        while true {
            let rows = try await store.deliveries(event: event)
            if isDone(rows) || ContinuousClock.now > end { return rows }
            try await Task.sleep(for: .milliseconds(5))
        }
    }
}
