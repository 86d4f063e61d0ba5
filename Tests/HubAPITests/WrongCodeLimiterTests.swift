import Testing

@testable import HubAPI

@Suite("WrongCodeLimiter")
struct WrongCodeLimiterTests {
    private let second: UInt64 = 1_000_000_000

    @Test("the minute begins with the first wrong code and ends for all of them together")
    func minute() {
        var limiter = WrongCodeLimiter(wrongMax: 2)
        limiter.recordWrong("a", now: 10 * second)
        #expect(limiter.wait("a", now: 11 * second) == nil)
        limiter.recordWrong("a", now: 40 * second)
        #expect(limiter.wait("a", now: 40 * second) == 30 * second)
        #expect(limiter.wait("b", now: 40 * second) == nil)
        #expect(limiter.wait("a", now: 70 * second - 1) == 1)
        #expect(limiter.wait("a", now: 70 * second) == nil)
        limiter.recordWrong("a", now: 70 * second)
        #expect(limiter.wait("a", now: 70 * second) == nil)
    }

    @Test("a call with an earlier time than the one before it does no harm")
    func earlierTime() {
        var limiter = WrongCodeLimiter(wrongMax: 1)
        limiter.recordWrong("a", now: 100)
        limiter.recordWrong("b", now: 90)
        #expect(limiter.wait("a", now: 90) == WrongCodeLimiter.windowNanoseconds)
    }

    @Test("what is over is forgotten, and a full limiter forgets the oldest")
    func bound() {
        var limiter = WrongCodeLimiter(wrongMax: 1, addressesMax: 3)
        for index in 0..<100 {
            limiter.recordWrong("a\(index)", now: UInt64(index) * second)
            #expect(limiter.addressCount <= 3)
        }
        #expect(limiter.wait("a99", now: 100 * second) != nil && limiter.wait("a97", now: 100 * second) != nil)
        #expect(limiter.wait("a96", now: 100 * second) == nil)
        limiter.recordWrong("z", now: 1000 * second)
        #expect(limiter.addressCount == 1)
    }

    @Test("0 means no limit")
    func off() {
        var limiter = WrongCodeLimiter(wrongMax: 0)
        for _ in 0..<100 { limiter.recordWrong("a", now: 0) }
        #expect(limiter.wait("a", now: 0) == nil && limiter.addressCount == 0)
    }

    @Test(
        "an IPv6 neighbourhood counts as one peer",
        arguments: [
            ("192.0.2.1", "192.0.2.1"), ("::ffff:192.0.2.1", "192.0.2.1"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2"),
            ("2001:db8:1:2::9", "2001:db8:1:2"), ("2001:db8::1:2:3:4:5", "2001:db8:0:1"), ("2001:db8::1", "2001:db8:0:0"),
            ("::1", "0:0:0:0"),
            ("fe80::1%eth0", "fe80:0:0:0"), ("", ""), (":", ""), ("::", "0:0:0:0"), ("1:2:3:4:5:6:7:8:9::1:2", "1:2:3:4"),
        ])
    func key(address: String, key: String) {
        #expect(WrongCodeLimiter.key(address) == key)
    }
}
