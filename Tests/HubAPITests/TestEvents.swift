import Foundation
import HubCore
import HubDelivery
import HubStorage

/// A store of events in a folder of its own, which goes with it.
final class TestEvents {
    private let folder: URL
    private let clock: ManualClock
    let store: SQLiteStore

    init(clock: ManualClock) throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("tandem-api-\(UUID().uuidString)")
        self.clock = clock
        store = try SQLiteStore(path: folder.appendingPathComponent("t.db").path, synchronous: .normal, time: clock)
    }

    deinit {
        do { try FileManager.default.removeItem(at: folder) } catch { print("left behind: \(folder.path)") }
    }

    /// Commits an event for these recipients, all of them with the same note.
    @discardableResult
    func commit(
        _ id: String, to users: [String], app: String = "1", channel: String = "presence-quiz-s1", data: String = "{}",
        note: RecipientNote = RecipientNote(state: .live, choice: .awaited), deliveries: [PushRecord] = []
    ) async throws -> EventRecord {
        let now = clock.wallMilliseconds
        let event = EventRecord(
            id: id, app: app, channel: channel, name: "asked", data: data, policy: .critical, committedAt: now, expiresAt: now + 600_000)
        let opening = RecipientOpening(snapshot: RecipientSnapshot(users: users), note: note)
        return try await store.commit([EventCommit(event, deliveries, recipients: opening)])[0]
    }

    func delivery(_ event: String, _ user: String, _ device: String, _ state: PushState) -> PushRecord {
        PushRecord(
            nid: NotificationID.make(event: event, app: "1", user: user), event: event, app: "1", user: user, device: device, state: state,
            reason: "live, not confirmed", dueAt: clock.wallMilliseconds)
    }
}
