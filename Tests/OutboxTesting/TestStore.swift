import Foundation
import HubDefinitions
import HubDelivery
import HubOutbox
import HubStorage
import HubTesting
import Logging

/// A store in a folder of its own, which goes with it.
package final class TestStore {
    package let folder: URL
    package let clock: ManualClock
    package private(set) var store: SQLiteStore

    package init(clock: ManualClock = ManualClock()) throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("tandem-\(UUID().uuidString)")
        self.clock = clock
        store = try SQLiteStore(path: folder.appendingPathComponent("t.db").path, synchronous: .normal, time: clock)
    }

    deinit {
        do { try FileManager.default.removeItem(at: folder) } catch { print("left behind: \(folder.path)") }
    }

    /// Milliseconds since the clock began.
    package var elapsed: Int64 { Int64(clock.monotonicNanoseconds / 1_000_000) - 1_000 }

    /// Opens the store as another process finds it that starts now.
    package func reopen() async throws {
        try await store.close()
        store = try SQLiteStore(path: folder.appendingPathComponent("t.db").path, synchronous: .normal, time: clock)
    }

    package func outbox(_ gateway: any PushGateway, definitions: DefinitionSet = .empty, live: LiveStream? = nil) -> Outbox {
        Outbox(
            gateway: gateway, directory: store, store: store, definitions: definitions, time: clock, live: live,
            logger: Logger(label: "test"))
    }

    package func device(
        user: String = "u", id: String = "d", token: String? = "token-of-u", timezone: String? = nil, notifications: Bool = true
    ) async throws {
        _ = try await store.putDevice(
            Device(
                app: "1", user: user, id: id, platform: .android, provider: .fcm, token: token, environment: .production,
                timezone: timezone, notifications: notifications, registeredAt: clock.wallMilliseconds))
    }

    /// Commits one event with one push that is due now, or after the delay.
    package func commitPush(
        event: String = "e1", policy: Policy = .critical, group: String? = nil, user: String = "u", lifeMilliseconds: Int64 = 600_000,
        delayMilliseconds: Int64 = 0
    ) async throws -> PushRecord {
        let pushes = try await commitPushes(
            event: event, policy: policy, group: group, user: user, devices: ["d"], lifeMilliseconds: lifeMilliseconds,
            delayMilliseconds: delayMilliseconds)
        return pushes[0]
    }

    /// Commits one event with a push for each device.
    package func commitPushes(
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
    package func row(_ event: String = "e1", until isDone: (PushRecord) -> Bool) async throws -> PushRecord? {
        try await rows(event) { $0.first.map(isDone) ?? false }.first
    }

    /// The event's rows by device once they are as wanted; whatever they are after the time limit.
    package func rows(_ event: String, until isDone: ([PushRecord]) -> Bool) async throws -> [PushRecord] {
        let end = ContinuousClock.now + .seconds(60)
        while true {
            let rows = try await store.deliveries(event: event)
            if isDone(rows) || ContinuousClock.now > end { return rows }
            try await Task.sleep(for: .milliseconds(5))
        }
    }
}
