import Foundation
import HubCore
import HubDelivery
import HubTesting
import Synchronization
import Testing

/// A clock that a test sets.
final class TestClock: TimeSource {
    private let milliseconds = Mutex<Int64>(1_700_000_000_000)

    var monotonicNanoseconds: UInt64 { UInt64(wallMilliseconds) * 1_000_000 }
    var wallMilliseconds: Int64 { milliseconds.withLock { $0 } }

    func advance(milliseconds delta: Int64) {
        milliseconds.withLock { $0 += delta }
    }
}

/// A folder of its own for one test, removed with the value's last use.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "tandem-store-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        // A store released without `close` removes its -wal and -shm files at that moment, on a thread of its own. If a file vanishes
        // between listing and removal of the folder, the whole removal fails.
        var failure: (any Error)?
        for _ in 0..<10 where FileManager.default.fileExists(atPath: path) {
            do {
                try FileManager.default.removeItem(atPath: path)
                failure = nil
            } catch { failure = error }
        }
        if let failure { Issue.record("\(path) stays: \(failure)") }
    }

    func file(_ name: String = "tandem.db") -> String { path + "/" + name }
}

struct ConditionNeverMet: Error {}

/// Waits for a condition that another task brings about.
func waitUntil(_ condition: () -> Bool) async throws {
    guard await eventually(condition) else { throw ConditionNeverMet() }
}

extension EventRecord {
    static func sample(
        _ id: String, app: String = "1", channel: String = "presence-game-7", committedAt: Int64 = 1_000
    ) -> EventRecord {
        EventRecord(
            id: id, app: app, channel: channel, name: "question_asked", data: #"{"question_id":3}"#, policy: .critical,
            committedAt: committedAt, expiresAt: committedAt + 60_000)
    }
}

extension PushRecord {
    static func sample(
        event: String, user: String = "u1", device: String = "d1", state: PushState = .waiting, dueAt: Int64 = 5_000,
        message: PushMessage? = nil
    ) -> PushRecord {
        PushRecord(
            nid: "nid-\(event)-\(user)", event: event, app: "1", user: user, device: device, state: state, reason: "absent",
            dueAt: dueAt, message: message)
    }
}

extension PushMessage {
    static func sample(event: String, user: String = "u1") -> PushMessage {
        PushMessage(
            nid: "nid-\(event)-\(user)", event: event, kind: .alert, content: .data, title: "Hide & Seek 🎯", body: "A \"3 km\"\nquestion",
            image: "https://example.org/a.png",
            data: [
                "nested": ["list": [1, .double(2.5), true, .null, "x\u{0}y"], "big": .int(.max), "small": .int(.min)],
                "whole": .double(5),
            ],
            apns: ["sound": "default", "content-available": 1], apnsRoot: ["image_url": "x"], apnsHeaders: ["apns-priority": "5"],
            apnsOptions: ["analytics_label": "ios"], liveActivityToken: "abcd", android: ["channel_id": "game"],
            androidV2: ["background_sync": [:]],
            webpush: ["headers": ["Urgency": "high"]], fcmOptions: ["analytics_label": "quiz"], group: "g.q3",
            expiresAt: 61_000, committedAt: 1_000, sequence: 0)
    }
}

extension Device {
    static func sample(
        user: String, id: String = "phone", app: String = "1", provider: PushProvider = .fcm, token: String? = "token-a",
        notifications: Bool = true, registeredAt: Int64 = 100
    ) -> Device {
        Device(
            app: app, user: user, id: id, platform: .ios, provider: provider, token: token, environment: .sandbox,
            locale: "de-CH", notifications: notifications, registeredAt: registeredAt)
    }
}

/// Makes every write beyond `bytes` of a file fail in this process, as a full disk does; nil lifts that. For exit tests.
func limitFileSize(bytes: rlim_t?) {
    // Otherwise the signal would end the process before the write could fail.
    signal(SIGXFSZ, SIG_IGN)
    let resource = __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
    var limit = rlimit()
    precondition(getrlimit(resource, &limit) == 0)
    limit.rlim_cur = bytes ?? limit.rlim_max
    precondition(setrlimit(resource, &limit) == 0)
}
