import Testing

@testable import HubAPI

@Suite("WrongCodeLimiter")
struct WrongCodeLimiterTests {
    private let second: UInt64 = 1_000_000_000

    @Test("the minute begins with the first wrong code and ends for all of them together")
    func minute() {
        var limiter = WrongCodeLimiter(wrongMax: 2)
        limiter.recordWrong("a", now: 10 * second)
        #expect(!limiter.takesTurns("a", now: 11 * second))
        limiter.recordWrong("a", now: 40 * second)
        #expect(limiter.takesTurns("a", now: 40 * second))
        #expect(!limiter.takesTurns("b", now: 40 * second))
        #expect(limiter.takesTurns("a", now: 70 * second - 1))
        #expect(!limiter.takesTurns("a", now: 70 * second))
        limiter.recordWrong("a", now: 70 * second)
        #expect(!limiter.takesTurns("a", now: 70 * second))
    }

    @Test("turns are a second apart, ten may wait, and one more may not")
    func turns() {
        var limiter = WrongCodeLimiter(wrongMax: 1)
        limiter.recordWrong("a", now: 5 * second)
        for wait in 1...10 { #expect(limiter.takeTurn("a", now: 5 * second) == UInt64(wait) * second) }
        #expect(limiter.takeTurn("a", now: 5 * second) == nil && limiter.takeTurn("a", now: 6 * second - 1) == nil)
        #expect(limiter.takeTurn("a", now: 6 * second) == 10 * second && limiter.takeTurn("a", now: 6 * second) == nil)
        #expect(limiter.takeTurn("a", now: 30 * second) == 0 && limiter.takeTurn("a", now: 30 * second) == second)
        #expect(limiter.takeTurn("b", now: 30 * second) == 0)
    }

    @Test("a call with an earlier time than the one before it does no harm")
    func earlierTime() {
        var limiter = WrongCodeLimiter(wrongMax: 1)
        limiter.recordWrong("a", now: 100)
        limiter.recordWrong("b", now: 90)
        #expect(limiter.takesTurns("a", now: 90))
    }

    @Test("what is over is forgotten, and a full limiter forgets the oldest")
    func bound() {
        var limiter = WrongCodeLimiter(wrongMax: 1, addressesMax: 3)
        for index in 0..<100 {
            limiter.recordWrong("a\(index)", now: UInt64(index) * second)
            #expect(limiter.addressCount <= 3)
        }
        #expect(limiter.takesTurns("a99", now: 100 * second) && limiter.takesTurns("a97", now: 100 * second))
        #expect(!limiter.takesTurns("a96", now: 100 * second))
        limiter.recordWrong("z", now: 1000 * second)
        #expect(limiter.addressCount == 1)
    }

    @Test("0 means no limit")
    func off() {
        var limiter = WrongCodeLimiter(wrongMax: 0)
        for _ in 0..<100 { limiter.recordWrong("a", now: 0) }
        #expect(!limiter.takesTurns("a", now: 0) && limiter.addressCount == 0)
    }

    @Test("an IPv6 neighbourhood counts as one peer, and what is no address as itself")
    func peers() {
        #expect(
            PeerName.of("2001:db8:1:2:3::4") == PeerName.of("2001:db8:1:2::9")
                && PeerName.of("2001:db8:1:3::9") != PeerName.of("2001:db8:1:2::9"))
        #expect(PeerName.of("::ffff:192.0.2.1") == "192.0.2.1" && PeerName.of("") == "" && PeerName.of("somebody") == "somebody")
    }
}
