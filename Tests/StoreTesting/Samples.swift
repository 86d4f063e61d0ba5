import HubCore
import HubDelivery

extension EventRecord {
    package static func sample(
        _ id: String, app: String = "1", channel: String = "presence-game-7", committedAt: Int64 = 1_000
    ) -> EventRecord {
        EventRecord(
            id: id, app: app, channel: channel, name: "question_asked", data: #"{"question_id":3}"#, policy: .critical,
            committedAt: committedAt, expiresAt: committedAt + 60_000)
    }
}

extension PushRecord {
    package static func sample(
        event: String, user: String = "u1", device: String = "d1", state: PushState = .waiting, dueAt: Int64 = 5_000,
        message: PushMessage? = nil
    ) -> PushRecord {
        PushRecord(
            nid: "nid-\(event)-\(user)", event: event, app: "1", user: user, device: device, state: state, reason: "absent",
            dueAt: dueAt, message: message)
    }
}

extension PushMessage {
    package static func sample(event: String, user: String = "u1") -> PushMessage {
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
    package static func sample(
        user: String, id: String = "phone", app: String = "1", provider: PushProvider = .fcm, token: String? = "token-a",
        notifications: Bool = true, registeredAt: Int64 = 100
    ) -> Device {
        Device(
            app: app, user: user, id: id, platform: .ios, provider: provider, token: token, environment: .sandbox,
            locale: "de-CH", notifications: notifications, registeredAt: registeredAt)
    }
}
