import HubCore
import Testing

@testable import HubScaleOut

@Suite("Beats of a node")
struct NodeBeatTests {
    @Test("seven looks take longer than a dead node acts, however late the first of them was", arguments: [0, 240, 260, 490, 510, 740])
    func span(late: Int) {
        let began = ContinuousClock.now
        var (due, now) = (began, began + .milliseconds(late))
        let first = now
        for _ in 0..<NodeWatch.looksMax {
            due = RedisNode.nextBeat(after: due, at: now)
            repeat { now = Tick.next(RedisNode.beatEvery / 2, at: now, since: began) } while now < due
        }
        // Its last act needs time to end.
        #expect(now - first > RedisNode.actsFor + RedisNode.beatEvery / 2)
        #expect(now - first <= RedisNode.beatEvery * (NodeWatch.looksMax + 1))
    }
}
