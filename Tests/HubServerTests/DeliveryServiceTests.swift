import HubAPI
import HubDelivery
import HubTesting
import PusherProtocol
import Testing

@testable import HubServer

@Suite("DeliveryService")
struct DeliveryServiceTests {
    private func run(_ stage: DeliveryStage, wasAway: Bool = false, _ body: () async throws -> Void) async throws {
        stage.start(wasAway: wasAway)
        do {
            try await body()
        } catch {
            await stage.stop()
            throw error
        }
        await stage.stop()
    }

    // MARK: Scheduled publishes

    @Test("a trial tells what would be refused, and leaves nothing behind")
    func trial() async throws {
        let stage = try DeliveryStage()
        try await stage.session()
        try await run(stage) { () async throws in
            _ = try await stage.publish(try PendingPublish(), purpose: .trial)
            _ = try await stage.publish(try PendingPublish("plain", to: "room"), purpose: .trial)
            let lacking = try PendingPublish(data: "{}")
            stage.submit(lacking, purpose: .trial)
            let elsewhere = try PendingPublish(to: "presence-game-8")
            stage.submit(elsewhere, purpose: .trial)
            #expect(await eventually { lacking.result != nil && elsewhere.result != nil })
            #expect(lacking.refusal?.status == 400 && lacking.refusal?.sentence.contains("word") == true)
            #expect(elsewhere.refusal?.status == 404)
        }
        #expect(try await stage.test.store.history(app: "1", channel: "presence-game-7", after: 0, limit: 9) == [])
        #expect(stage.gateway.sent.isEmpty)
    }

    @Test("a scheduled publish takes its row with it; one that was cancelled is not published, and keeps nobody from it who is committed with it")
    func scheduled() async throws {
        let stage = try DeliveryStage()
        try await stage.session()
        let now = stage.test.clock.wallMilliseconds
        try await stage.test.store.schedule(
            ["waiting", "cancelled", "plain"].map {
                ScheduledPublish(id: $0, app: "1", deliverAt: now, request: [], createdAt: now)
            }, answers: [])
        #expect(try await stage.test.store.cancelScheduled(app: "1", id: "cancelled", now: now) == .waiting)
        let waiting = try PendingPublish(data: #"{"word":"one"}"#)
        let cancelled = try PendingPublish(data: #"{"word":"two"}"#)
        let plain = try PendingPublish("plain", to: "room")
        let usual = try PendingPublish(data: #"{"word":"three"}"#)
        // All of them before it starts: committed together.
        stage.submit(waiting, purpose: .scheduled(id: "waiting"))
        stage.submit(cancelled, purpose: .scheduled(id: "cancelled"))
        stage.submit(plain, purpose: .scheduled(id: "plain"))
        stage.submit(usual)
        try await run(stage) { () async throws in
            #expect(await eventually { [waiting, cancelled, plain, usual].allSatisfy { $0.result != nil } })
            // The answers come with the commit, the pushes after it, and stopping leaves to the next start what was not sent.
            #expect(await eventually { stage.gateway.sent.count >= 2 })
        }
        #expect(cancelled.refusal == .notWaiting)
        let history = try await stage.test.store.history(app: "1", channel: "presence-game-7", after: 0, limit: 9)
        #expect(history.map(\.data) == [#"{"word":"one"}"#, #"{"word":"three"}"#])
        let taken = try #require(try await stage.test.store.scheduled(app: "1", id: "waiting"))
        #expect(taken.state == .published && taken.outcome == history.first?.id)
        #expect(try await stage.test.store.scheduled(app: "1", id: "plain")?.state == .published)
        #expect(stage.gateway.sent.count == 2)
    }

    // MARK: Receipts that apps send

    @Test("a receipt settles who is waited for: nobody is pushed to")
    func confirmsAwaited() async throws {
        let stage = try DeliveryStage()
        try await stage.session()
        try await run(stage, wasAway: true) { () async throws in
            let event = try #require(try await stage.publish(try PendingPublish()).first?.events.first?.id)
            #expect(try await stage.test.store.trail(event: event)?.isOpen == true)
            stage.test.clock.advance(milliseconds: 700)
            await stage.delivery.received(stage.receipt(event))
            let confirmed = try await stage.recipient(of: event) { $0.isConfirmed }
            #expect(confirmed?.confirmedAt == ManualClock.start + 700 && confirmed?.isPushed == false)
            #expect(await eventuallyClosed(stage, event))
            // Another one changes nothing.
            stage.test.clock.advance(seconds: 40)
            await stage.delivery.received(stage.receipt(event))
            _ = try await stage.publish(try PendingPublish("plain", to: "room"))
        }
        #expect(stage.gateway.sent.isEmpty)
    }

    private func eventuallyClosed(_ stage: DeliveryStage, _ event: String) async -> Bool {
        let end = ContinuousClock.now + .seconds(60)
        while ContinuousClock.now < end {
            if (try? await stage.test.store.trail(event: event))??.isOpen == false { return true }
            try? await Task.sleep(for: .milliseconds(5))
        }
        return false
    }

    @Test("a receipt of one device ends what waits to be sent to the others, unless each stands for itself", arguments: [true, false])
    func siblings(isShared: Bool) async throws {
        let yaml = DeliveryStage.yaml + (isShared ? "" : "\nsuppress_scope: device")
        let stage = try DeliveryStage(ScriptedGateway([.retry(after: .seconds(60), reason: "http 503"), .accepted(providerID: "p")]), yaml: yaml)
        try await stage.session(devices: ["phone", "tablet"])
        try await run(stage) { () async throws in
            let event = try #require(try await stage.publish(try PendingPublish()).first?.events.first?.id)
            let pushed = try await stage.recipient(of: event) { recipient in
                recipient.deliveries.allSatisfy { !$0.attempts.isEmpty }
            }
            #expect(pushed?.deliveries.map(\.record.state) == [.retry, .accepted])
            #expect(pushed?.deliveries.map(\.attempts.last?.answer) == ["http 503", "accepted"])
            await stage.delivery.received(stage.receipt(event, device: "tablet"))
            let settled = try await stage.recipient(of: event) {
                $0.isConfirmed && (!isShared || $0.deliveries.first?.record.state == .cancelled)
            }
            #expect(settled?.isConfirmed == true)
            #expect(settled?.deliveries.map(\.record.state) == [isShared ? .cancelled : .retry, .accepted])
        }
    }
}

extension DeliveryStage {
    fileprivate func receipt(_ event: String, device: String = "phone") -> AppReceipt {
        AppReceipt(event: event, app: "1", channel: "presence-game-7", user: "u", device: device, recipient: 0)
    }
}
