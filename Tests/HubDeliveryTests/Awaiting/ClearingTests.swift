import HubCore
import HubDefinitions
import HubDelivery
import Testing

@Suite("Clearing")
struct ClearingTests {
    private let now: Int64 = 5_000
    private let opened = PushCancellation(user: "u", isOfNotification: true)
    private let read = PushCancellation(user: "u")

    private func delivery(
        _ device: String, _ state: PushState = .accepted, policy: Policy = .notify, purpose: DeliveryPurpose = .notification,
        dueAt: Int64 = 1_000
    ) -> PushRecord {
        let nid = NotificationID.make(event: "e", app: "1", user: "u")
        return PushRecord(
            nid: nid, event: "e", app: "1", user: "u", device: device, purpose: purpose, state: state, reason: "absent", dueAt: dueAt,
            message: PushMessage(
                nid: nid, event: "e", kind: policy == .sync ? .silent : .alert, policy: policy, title: "t", body: "b",
                data: ["secret": "x"],
                apns: ["sound": "default"], group: "g", expiresAt: 9_000, committedAt: 500, sequence: 7))
    }

    @Test("the others that were sent the notification are told which one to take away, silently, and nothing else of it")
    func message() throws {
        let found = Clearing.deliveries(after: opened, on: "tablet", among: [delivery("phone"), delivery("tablet")], now: now)
        let nid = NotificationID.make(event: "e", app: "1", user: "u")
        let own = NotificationID.clearing(nid)
        #expect(own != nid && own.count == nid.count)
        #expect(
            found == [
                PushRecord(
                    nid: own, event: "e", app: "1", user: "u", device: "phone", purpose: .clear, state: .due,
                    reason: "confirmed on another device",
                    dueAt: now,
                    message: PushMessage(
                        nid: own, event: "e", kind: .silent, policy: .sync, title: nil, body: nil,
                        data: ["type": "clear", "clear": .string(nid)], expiresAt: 9_000, committedAt: 500, sequence: 7))
            ])
    }

    @Test("of each state", arguments: PushState.allCases)
    func states(state: PushState) {
        let found = Clearing.deliveries(after: opened, on: "tablet", among: [delivery("phone", state, dueAt: 6_000)], now: now)
        switch state {
        case .accepted: #expect(found.map(\.dueAt) == [now])
        // A clearing waits until the attempt under way has ended.
        case .leased: #expect(found.map(\.dueAt) == [6_000])
        default: #expect(found.isEmpty, "nothing stands on its screen")
        }
    }

    @Test(
        "only visible pushes are taken back, and of those that go out in any case none that only the event was confirmed of",
        arguments: Policy.allCases)
    func policies(policy: Policy) {
        let rows = [delivery("phone", policy: policy)]
        let byReading = Clearing.deliveries(after: read, on: "tablet", among: rows, now: now)
        let byOpening = Clearing.deliveries(after: opened, on: "tablet", among: rows, now: now)
        #expect(byReading.isEmpty == [.sync, .both, .pushOnly].contains(policy))
        #expect(byOpening.isEmpty == (policy == .sync))
    }

    @Test("the first word counts: who was told to clear does not have the others clear")
    func once() {
        let rows = [delivery("phone"), delivery("tablet"), delivery("phone", .cancelled, purpose: .clear)]
        #expect(Clearing.deliveries(after: opened, on: "phone", among: rows, now: now).isEmpty)
        #expect(Clearing.deliveries(after: opened, on: "tablet", among: rows, now: now).isEmpty)
    }

    @Test("nothing is sent for what has expired, or has no device of its own")
    func worthless() {
        #expect(Clearing.deliveries(after: opened, on: "tablet", among: [delivery("phone")], now: 9_000).isEmpty)
        #expect(Clearing.deliveries(after: opened, on: "tablet", among: [delivery("")], now: now).isEmpty)
        var direct = delivery("direct")
        direct.address = DirectAddress(provider: .fcm, platform: .android, environment: .production, form: .topic, text: "news")
        #expect(Clearing.deliveries(after: opened, on: "tablet", among: [direct], now: now).isEmpty)
    }
}
