import HubDefinitions
import HubDelivery
import Testing

@testable import HubOutbox

@Suite("Order of sending")
struct DeliveryOrderTests {
    private let fcm = PushRoute(app: "1", provider: .fcm)
    private let apns = PushRoute(app: "1", provider: .apns)

    private func delivery(
        _ nid: String, policy: Policy = .notify, dueAt: Int64 = 0, committedAt: Int64 = 0, life: Int64 = 600_000
    ) -> PushRecord {
        PushRecord(
            nid: nid, event: nid, app: "1", user: "u", device: "d", state: .due, reason: "absent", dueAt: dueAt,
            message: PushMessage(
                nid: nid, event: nid, kind: .alert, policy: policy, title: nil, body: nil, expiresAt: committedAt + life,
                committedAt: committedAt))
    }

    @Test("of what is due together critical and short-lived ones go first, then the soonest due and the older event")
    func urgentFirst() {
        var queue = OutboxQueue()
        for number in 0..<5_000 { queue.insert(delivery("bulk\(number)", dueAt: 30_000, committedAt: Int64(number))) }
        queue.insert(delivery("critical", policy: .critical, dueAt: 30_000, committedAt: 29_000))
        queue.insert(delivery("short", dueAt: 30_000, committedAt: 28_000, life: 60_000))
        queue.insert(delivery("later", policy: .critical, dueAt: 30_001))
        #expect(queue.takeDue(now: 30_000, limit: 4).map(\.nid) == ["short", "critical", "bulk0", "bulk1"])
        #expect(queue.takeDue(now: 30_001, limit: 2).map(\.nid) == ["later", "bulk2"])
        #expect(queue.count == 4_997)
    }

    @Test("what waits for a lane is handed out for that lane alone: urgent ones first, then what expires first")
    func lanes() {
        var queue = OutboxQueue()
        queue.park(delivery("long", life: 900_000), on: fcm)
        queue.park(delivery("brief", life: 300_000), on: fcm)
        queue.park(delivery("critical", policy: .critical, life: 600_000), on: fcm)
        queue.park(delivery("other"), on: apns)
        #expect(queue.takeDue(now: 1_000, limit: 9).isEmpty && queue.nextDue() == 300_000)
        #expect(queue.count == 4 && queue.parkedCount == 4)
        #expect(queue.takeParked(on: fcm, count: 0, urgent: 5).map(\.nid) == ["critical"])
        #expect(queue.takeParked(on: fcm, count: 1, urgent: 5).map(\.nid) == ["brief"])
        #expect(queue.hasParked(on: fcm))
        #expect(queue.takeParked(on: fcm, count: 9, urgent: 9).map(\.nid) == ["long"])
        #expect(!queue.hasParked(on: fcm) && Set(queue.routes) == [apns] && queue.parkedCount == 1)
    }

    @Test("what waits for a lane comes up as due at the end of its life, and is found by its name until then")
    func ends() {
        var queue = OutboxQueue()
        queue.park(delivery("a", life: 5_000), on: fcm)
        queue.park(delivery("b", life: 9_000), on: fcm)
        #expect(queue.contains(delivery("b")) && queue.remove(nid: "b").map(\.nid) == ["b"])
        #expect(queue.takeDue(now: 4_999, limit: 9).isEmpty)
        #expect(queue.takeDue(now: 5_000, limit: 9).map(\.nid) == ["a"])
        #expect(queue.takeParked(on: fcm, count: 9, urgent: 9).isEmpty && queue.count == 0 && queue.parkedCount == 0)
    }

    @Test("parked again and again, a delivery takes one place, and leaves the lane when it goes back to its time")
    func again() {
        var queue = OutboxQueue()
        for _ in 0..<5_000 { queue.park(delivery("a"), on: fcm) }
        queue.insert(delivery("a", dueAt: 7))
        #expect(queue.count == 1 && queue.parkedCount == 0 && queue.nextDue() == 7)
        #expect(queue.takeParked(on: fcm, count: 9, urgent: 9).isEmpty)
        #expect(queue.takeDue(now: 7, limit: 9).map(\.nid) == ["a"])
    }
}
