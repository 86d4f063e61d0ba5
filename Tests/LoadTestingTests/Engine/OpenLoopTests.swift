import LoadTesting
import Testing

@Suite("OpenLoop")
struct OpenLoopTests {
    private static let millisecond: UInt64 = 1_000_000

    @Test("is due at a constant rate, whatever was taken")
    func rate() {
        var loop = OpenLoop(rate: 1000, start: 5 * Self.millisecond)
        #expect(loop.take(now: 4 * Self.millisecond) == nil)
        #expect(loop.waiting(now: 4 * Self.millisecond) == 0)
        #expect(loop.take(now: 5 * Self.millisecond) == 5 * Self.millisecond)
        #expect(loop.take(now: 5 * Self.millisecond) == nil)
        #expect(loop.waiting(now: 8 * Self.millisecond) == 3)
        #expect(loop.take(now: 8 * Self.millisecond) == 6 * Self.millisecond)
        #expect(loop.nextDue == 7 * Self.millisecond)
    }

    @Test("does not drift over a day of odd intervals")
    func drift() {
        var loop = OpenLoop(rate: 3, start: 0)
        let day: UInt64 = 86_400_000_000_000
        var count: UInt64 = 0
        while loop.take(now: day) != nil { count += 1 }
        #expect(count == 3 * 86_400 + 1)
    }

    /// A server that answers within a millisecond, but stalls for a second after ten seconds. One request is under way at a time.
    @Test("a stall shows in the latencies of everything that fell due in it")
    func coordinatedOmission() {
        let stall = 10_000 * Self.millisecond..<11_000 * Self.millisecond
        var loop = OpenLoop(rate: 100, start: 0)
        var honest = Latencies()
        var naive = Latencies()
        var free: UInt64 = 0
        while let due = loop.take(now: 20_000 * Self.millisecond) {
            let sent = max(due, free)
            let answered = stall.contains(sent) ? stall.upperBound + Self.millisecond : sent + Self.millisecond
            honest.record(from: due, to: answered)
            naive.record(from: sent, to: answered)
            free = answered
        }
        // A hundred of 2,000 fell due while it stalled, and waited for half a second on average.
        #expect(honest.percentile(99) > 700_000)
        #expect(honest.percentile(96) > 100_000)
        #expect(honest.percentile(90) < 2_000)
        // Counted from the sending, one request was slow and the rest look perfect.
        #expect(naive.percentile(99) < 2_000)
    }
}
