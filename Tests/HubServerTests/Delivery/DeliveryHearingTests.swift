import HubCore
import HubDelivery
import HubTesting
import Synchronization
import Testing

@testable import HubServer

@Suite("Delivery hears its loops", .serialized)
struct DeliveryHearingTests {
    @Test("nobody is pushed to before the loop has reported, and whose receipt lay there is not")
    func receiptFirst() async throws {
        let stage = try DeliveryStage(loops: 1)
        try await stage.session()
        stage.start()
        let connection = try stage.report()
        stage.delivery.report([.state(connection, .foreground)], loop: 0)
        let event = try #require(try await stage.publish(PendingPublish()).first?.events.first?.id)
        stage.delivery.report([.pinged(events: [1], cursor: 2)], loop: 0)
        stage.test.clock.advance(milliseconds: 2500)
        stage.delivery.report([], loop: 0)
        // The loop is asked, and has the receipt on its socket.
        var answers: [@Sendable (Int) -> Void] = []
        #expect(
            await eventually {
                var messages: [LoopMessage] = []
                stage.loop.drain(into: &messages)
                for case .report(let answer) in messages { answers.append(answer) }
                return !answers.isEmpty
            })
        stage.delivery.report([.receipt(connection, cursor: 2, byApplication: false)], loop: 0)
        for answer in answers { answer(0) }
        let recipient = try await stage.recipient(of: event) { $0.isConfirmed || $0.isPushed }
        #expect(recipient?.isConfirmed == true && recipient?.isPushed == false && stage.gateway.sent.isEmpty)
        await stage.stop()
    }
}
