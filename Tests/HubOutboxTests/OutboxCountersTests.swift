import HubDelivery
import HubTesting
import OutboxTesting
import Testing

@testable import HubOutbox

/// Counts of pushes that have ended, and of pushes that wait.
@Suite("Outbox counters")
struct OutboxCountersTests {
    @Test("what a receipt ends is counted once, whether it waits or is being sent and would be tried again")
    func cancelled() async throws {
        let test = try TestStore()
        try await test.device()
        let gateway = ScriptedGateway(holds: true)
        let outbox = test.outbox(gateway)
        func end(_ event: String) async throws {
            await outbox.drop(try await test.store.cancelDeliveries(event: event, [PushCancellation(user: "u")]))
        }
        await outbox.enqueue([try await test.commitPush(event: "waits", delayMilliseconds: 60_000)])
        try await end("waits")
        #expect(await outbox.figures.counts.ended == [.cancelled: 1])
        await outbox.enqueue([try await test.commitPush(event: "sent")])
        #expect(await eventually { gateway.sent.count == 1 })
        try await end("sent")
        // Its attempt has the last word.
        #expect(await outbox.figures.counts.ended == [.cancelled: 1])
        gateway.release(.retry(after: nil, reason: "http 503"))
        for _ in 0..<1_000 where await outbox.figures.counts.ended != [.cancelled: 2] { try await Task.sleep(for: .milliseconds(5)) }
        let figures = await outbox.figures
        #expect(figures.counts.ended == [.cancelled: 2] && figures.queued == 0 && figures.inFlight == 0)
        #expect(try await test.row("sent") { $0.state == .cancelled }?.outcome == "receipt")
        await outbox.close()
    }

    @Test("the queue counts what waits for each lane, without what has gone, and knows what is due for the longest")
    func queue() {
        func delivery(_ nid: String, due: Int64) -> PushRecord {
            PushRecord(nid: nid, event: "e", app: "1", user: "u", device: "d", state: .due, reason: "absent", dueAt: due)
        }
        var queue = OutboxQueue()
        let (apns, fcm) = (PushRoute(app: "1", provider: .apns), PushRoute(app: "1", provider: .fcm))
        #expect(queue.oldestDue == nil && queue.parkedCounts().isEmpty)
        queue.insert(delivery("later", due: 900))
        queue.park(delivery("a", due: 300), on: apns)
        queue.park(delivery("b", due: 200), on: fcm)
        queue.park(delivery("c", due: 400), on: fcm)
        #expect(queue.parkedCounts() == [apns: 1, fcm: 2] && queue.oldestDue == 200)
        _ = queue.remove(nid: "b")
        #expect(queue.parkedCounts() == [apns: 1, fcm: 1] && queue.oldestDue == 300)
    }
}
