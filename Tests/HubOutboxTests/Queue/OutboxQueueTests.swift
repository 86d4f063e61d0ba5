import HubDelivery
import Testing

@testable import HubOutbox

@Suite("OutboxQueue")
struct OutboxQueueTests {
    private func delivery(_ nid: String, device: String = "d", dueAt: Int64, committedAt: Int64 = 0) -> PushRecord {
        PushRecord(
            nid: nid, event: nid, app: "1", user: "u", device: device, state: .due, reason: "absent", dueAt: dueAt,
            message: PushMessage(nid: nid, event: nid, kind: .alert, title: nil, body: nil, expiresAt: .max, committedAt: committedAt))
    }

    @Test("the soonest due come first, of one time the older event, each once")
    func order() {
        var queue = OutboxQueue()
        var expected: [(Int64, Int64, String)] = []
        for number in 0..<500 {
            let (dueAt, committedAt) = (Int64(number * 7919 % 101), Int64(number * 31 % 17))
            expected.append((dueAt, committedAt, "n\(number)"))
            queue.insert(delivery("n\(number)", dueAt: 5, committedAt: 0))
            queue.insert(delivery("n\(number)", dueAt: dueAt, committedAt: committedAt))
        }
        #expect(queue.count == 500 && queue.nextDue() == 0)
        var taken = queue.takeDue(now: 50, limit: 100)
        #expect(taken.count == 100)
        taken += queue.takeDue(now: 50, limit: 1000)
        #expect(taken.allSatisfy { $0.dueAt <= 50 } && queue.nextDue() == 51)
        taken += queue.takeDue(now: 1000, limit: 1000)
        #expect(queue.count == 0 && queue.nextDue() == nil)
        let order = expected.enumerated().sorted { ($0.element.0, $0.element.1, $0.offset) < ($1.element.0, $1.element.1, $1.offset) }
        #expect(taken.map(\.nid) == order.map(\.element.2))
    }

    @Test("what is removed does not come, on one device or on all")
    func remove() {
        var queue = OutboxQueue()
        for round in 0..<5000 {
            for device in ["a", "b", "c"] { queue.insert(delivery("n", device: device, dueAt: Int64(5000 - round))) }
            queue.insert(delivery("m\(round)", dueAt: 1))
            #expect(queue.remove(nid: "m\(round)").count == 1)
        }
        #expect(queue.count == 3)
        #expect(queue.remove(nid: "n", device: "b").map(\.device) == ["b"] && queue.remove(nid: "n", device: "b").isEmpty)
        #expect(queue.contains(delivery("n", device: "a", dueAt: 0)) && !queue.contains(delivery("n", device: "b", dueAt: 0)))
        #expect(queue.takeDue(now: 5000, limit: 10).map(\.device) == ["a", "c"])
    }
}
