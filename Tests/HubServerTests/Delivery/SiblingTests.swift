import HubDelivery
import HubOutbox
import HubTesting
import OutboxTesting
import Testing

@testable import HubServer

/// Once one device has confirmed a notification, the participant's others take theirs away.
@Suite("Siblings")
struct SiblingTests {
    private static let clearing = DeliveryStage.yaml + "\nclear_siblings: true"

    /// Publishes to three devices, and stops in order when `body` is done.
    private func published(
        _ gateway: ScriptedGateway = ScriptedGateway(), yaml: String = clearing, until state: PushState = .accepted,
        _ body: (DeliveryStage, _ event: String) async throws -> Void
    ) async throws {
        let stage = try DeliveryStage(gateway, yaml: yaml, loops: 1)
        try await stage.session(devices: ["phone", "tablet", "watch"])
        stage.start()
        do {
            let event = try await publish(stage, until: state)
            try await body(stage, event)
        } catch {
            await stage.stop()
            throw error
        }
        await stage.stop()
    }

    private func publish(_ stage: DeliveryStage, until state: PushState = .accepted) async throws -> String {
        let event = try #require(try await stage.publish(try PendingPublish()).first?.events.first?.id)
        let pushed = try await stage.recipient(of: event) { recipient in
            recipient.deliveries.count == 3 && recipient.deliveries.contains { $0.record.state == state }
                && recipient.deliveries.allSatisfy { state == .leased || !$0.attempts.isEmpty }
        }
        #expect(pushed?.deliveries.count == 3)
        return event
    }

    private func clears(_ stage: DeliveryStage, _ event: String, count: Int, until state: PushState? = nil) async throws -> [PushRecord] {
        try await stage.test.rows(event) { rows in
            let clears = rows.filter { $0.purpose == .clear }
            return clears.count >= count && (state == nil || clears.allSatisfy { $0.state == state })
        }.filter { $0.purpose == .clear }
    }

    @Test("each of the others that was pushed to gets one silent push that names the notification; further receipts send nothing")
    func once() async throws {
        try await published { stage, event in
            let alert = try #require(stage.gateway.sent.first).message
            await stage.delivery.received(stage.receipt(event, device: "tablet"))
            #expect(try await clears(stage, event, count: 2, until: .accepted).map(\.device) == ["phone", "watch"])
            let sent = stage.gateway.sent.dropFirst(3)
            #expect(sent.map(\.target.device).sorted() == ["phone", "watch"])
            for message in sent.map(\.message) {
                #expect(message.kind == .silent && message.policy == .sync && message.group == nil && message.title == nil)
                #expect(message.data == ["type": "clear", "clear": .string(alert.nid)])
                #expect(message.event == event && message.expiresAt == alert.expiresAt && message.nid != alert.nid)
            }
            for device in ["tablet", "phone", "watch"] {
                await stage.delivery.received(stage.receipt(event, device: device, isOfNotification: true))
            }
            // The next event's receipt follows them in the same queue.
            let next = try await publish(stage)
            await stage.delivery.received(stage.receipt(next, device: "tablet"))
            _ = try await clears(stage, next, count: 2)
            #expect(try await clears(stage, event, count: 2).count == 2)
        }
    }

    @Test("a definition that does not ask for it sends none", arguments: ["", "\nclear_siblings: false", "\nsuppress_scope: device"])
    func optIn(keys: String) async throws {
        var known: (stage: DeliveryStage, event: String)?
        try await published(yaml: DeliveryStage.yaml + keys) { stage, event in
            await stage.delivery.received(stage.receipt(event, device: "tablet", isOfNotification: true))
            _ = try await stage.recipient(of: event) { $0.isConfirmed }
            known = (stage, event)
        }
        let (stage, event) = try #require(known)
        #expect(try await stage.test.store.deliveries(event: event).map(\.purpose) == [.notification, .notification, .notification])
    }

    @Test("what the receipt kept from being sent needs no clear")
    func cancelled() async throws {
        let later = PushOutcome.retry(after: .seconds(60), reason: "http 503")
        try await published(ScriptedGateway([later, .accepted(providerID: "p"), .rejected(reason: "http 400")]), until: .retry) {
            stage, event in
            let states = try await stage.test.store.deliveries(event: event).map { "\($0.device) \($0.state)" }
            await stage.delivery.received(stage.receipt(event, device: "desk"))
            let expected = states.filter { $0.hasSuffix("accepted") }.map { $0.split(separator: " ")[0] }
            #expect(try await clears(stage, event, count: 1, until: .accepted).map { $0.device[...] } == expected)
            #expect(stage.gateway.sent.count == 4)
        }
    }

    @Test("a push whose answer is not known yet is taken back when its attempt can have no answer any more")
    func underWay() async throws {
        try await published(ScriptedGateway(holds: true), until: .leased) { stage, event in
            #expect(await eventually { stage.gateway.sent.count == 3 })
            await stage.delivery.received(stage.receipt(event, device: "tablet"))
            let found = try await clears(stage, event, count: 2)
            #expect(found.map(\.dueAt) == Array(repeating: ManualClock.start + PushFlow.leaseMilliseconds, count: 2))
            #expect(found.map(\.state) == [.due, .due] && stage.gateway.sent.count == 3)
        }
    }

    @Test("a push that would be tried again after its receipt is not, and its clear is the last word")
    func noneBehind() async throws {
        try await published(ScriptedGateway(holds: true), until: .leased) { stage, event in
            #expect(await eventually { stage.gateway.sent.count == 3 })
            await stage.delivery.received(stage.receipt(event, device: "tablet"))
            _ = try await clears(stage, event, count: 2)
            stage.gateway.release(.retry(after: .seconds(60), reason: "http 503"))
            let pushes = try await stage.test.rows(event) { rows in !rows.contains { $0.state == .leased } }.filter {
                $0.purpose == .notification
            }
            #expect(pushes.map(\.state) == [.cancelled, .cancelled, .cancelled])
            #expect(pushes.map(\.outcome) == ["receipt", "receipt", "receipt"])
            stage.test.clock.advance(seconds: 200)
            await stage.outbox.enqueue([])
            #expect(await eventually { stage.gateway.sent.count == 5 })
            #expect(stage.gateway.sent.dropFirst(3).allSatisfy { $0.message.kind == .silent })
        }
    }

    @Test("a second clear within twenty minutes waits for the device's silent budget, and no receipt cancels it")
    func budget() async throws {
        try await published(yaml: Self.clearing.replacing("5m", with: "1h")) { stage, first in
            await stage.delivery.received(stage.receipt(first, device: "tablet"))
            _ = try await clears(stage, first, count: 2, until: .accepted)
            let second = try await publish(stage)
            await stage.delivery.received(stage.receipt(second, device: "tablet"))
            let held = try await stage.test.rows(second) { rows in
                rows.count == 5 && rows.filter { $0.purpose == .clear }.allSatisfy { $0.outcome == PushBudget.Reason.silentBudget.rawValue }
            }.filter { $0.purpose == .clear }
            #expect(held.map(\.outcome) == ["silent budget", "silent budget"] && held.map(\.state) == [.due, .due])
            await stage.delivery.received(stage.receipt(second, device: "phone", isOfNotification: true))
            let third = try await publish(stage)
            await stage.delivery.received(stage.receipt(third, device: "nobody's"))
            _ = try await clears(stage, third, count: 3)
            #expect(try await clears(stage, second, count: 2).allSatisfy { $0.outcome != "receipt" })
        }
    }

    @Test("reading a replay on the screen counts, where the socket is known to be a device's", arguments: [true, false])
    func replay(isBound: Bool) async throws {
        try await published(yaml: Self.clearing + "\nreplay: true") { stage, event in
            let connection = isBound ? try await stage.connect(device: "tablet") : try stage.report()
            let tokens = try #require(await stage.replayed()?.tokens)
            stage.delivery.report([.replayed(connection, events: tokens, cursor: 7)], loop: 0)
            stage.delivery.report([.state(connection, .foreground), .receipt(connection, cursor: 7, byApplication: false)], loop: 0)
            if !isBound {
                // The watch's receipt follows the replay's in the same queue, and is the first word that counts.
                _ = try await stage.recipient(of: event) { $0.isConfirmed }
                await stage.delivery.received(stage.receipt(event, device: "watch"))
            }
            let expected = isBound ? ["phone", "watch"] : ["phone", "tablet"]
            #expect(try await clears(stage, event, count: 2, until: .accepted).map(\.device) == expected)
        }
    }
}
