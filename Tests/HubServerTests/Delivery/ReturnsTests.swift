import HubChannels
import HubCore
import HubDelivery
import HubTesting
import PusherProtocol
import Testing

@testable import HubServer

/// People who come back to a restarted hub, and how long the others are waited for.
@Suite("Returns")
struct ReturnsTests {
    /// Small enough that no step of the manual clock is taken for lateness itself.
    private static let step = Lateness.leastMilliseconds - 10

    @Test(
        "while people of the process before keep coming back, the others' wait is stretched, at most to twice its length",
        arguments: [true, false])
    func stretched(theyKeepComing: Bool) async throws {
        let stage = try DeliveryStage(loops: 1)
        try await stage.session()
        stage.start(wasAway: true)
        _ = try await stage.publish(try PendingPublish())
        var elapsed: Int64 = 0
        var pushedAt: Int64?
        while pushedAt == nil, elapsed < 10_000 {
            if theyKeepComing { try await comeBack(number: Int(elapsed / Self.step), stage) }
            await turn(stage)
            if !stage.delivery.counters.withLock({ $0.escalations.isEmpty }) { pushedAt = elapsed }
            stage.test.clock.advance(milliseconds: Self.step)
            elapsed += Self.step
        }
        await stage.stop()
        // 2 s for `critical`, and as much again where the hub is late; a step or two because turns are so long.
        let expected: Int64 = theyKeepComing ? 4000 : 2000
        #expect(
            pushedAt.map { (expected - Self.step...expected + 4 * Self.step).contains($0) } == true, "pushed after \(pushedAt ?? -1) ms")
    }

    /// Somebody else subscribes.
    private func comeBack(number: Int, _ stage: DeliveryStage) async throws {
        let connection = ConnectionID(loop: 0, slot: 100 + number, generation: 1)
        let channel = try #require(ChannelName("presence-game-8"))
        stage.delivery.report(
            [
                .attached(
                    connection, ProcessTag(random: 7).socketID(of: connection), app: 0, channel: channel, user: "other-\(number)",
                    isBrowser: false,
                    ticket: UInt64(number + 1))
            ], loop: 0)
    }

    /// Has delivery look at what waits, and answers for the loop until nothing is asked.
    private func turn(_ stage: DeliveryStage) async {
        var messages: [LoopMessage] = []
        repeat {
            // An order is carried out at the end of a turn, so the second one comes after the turn that the first one began.
            for _ in 0..<2 {
                await stage.delivery.bind(SocketID(first: 1, second: 1), app: "1", user: "nobody", device: "none", channel: nil)
            }
            stage.loop.drain(into: &messages)
            for case .report(let answer) in messages { answer(0) }
        } while messages.contains { if case .report = $0 { true } else { false } }
    }
}
