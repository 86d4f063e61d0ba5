import Testing

@testable import HubPush

@Suite("RetryAfter")
struct RetryAfterTests {
    @Test(
        "seconds and dates, nothing else",
        arguments: [
            ("0", .seconds(0)), ("120", .seconds(120)), ("99999999999999999999", .seconds(86_400)), ("86401", .seconds(86_400)),
            ("Fri, 09 Jan 2026 01:02:00 GMT", .seconds(120)), ("Thu, 08 Jan 2026 01:02:00 GMT", .zero),
            ("Thu, 29 Feb 2024 12:00:00 GMT", .zero), ("Fri, 09 Jan 2036 01:02:00 GMT", .seconds(86_400)),
            ("-5", nil), ("1.5", nil), ("soon", nil), ("", nil), ("Fri, 09 Foo 2026 01:02:00 GMT", nil),
            ("Fri, 09 Jan 2026 25:02:00 GMT", nil), ("Fri, 09 Jan 2026 01:02:00", nil),
            ("Fri, 09 Jan 99999999999999999999 01:02:00 GMT", nil),
        ] as [(String, Duration?)])
    func parses(header: String, expected: Duration?) {
        #expect(RetryAfter.parse(header, now: now) == expected)
    }

    @Test("no header, no wait")
    func absent() { #expect(RetryAfter.parse(nil, now: now) == nil) }
}

@Suite("LaneGate")
struct LaneGateTests {
    private let second = nanosecondsPerSecond

    @Test("a stopped lane lets one push through after the hold, and each failed trial doubles it")
    func holds() {
        var gate = LaneGate()
        #expect(gate.admit(now: 0) == nil)
        #expect(gate.stop("r", now: 0) == true)
        #expect(gate.stop("r", now: 30 * second) == false)
        #expect(gate.admit(now: 59 * second)?.wait == .seconds(1))
        #expect(gate.admit(now: 60 * second) == nil)
        #expect(gate.admit(now: 60 * second)?.reason == "r")
        #expect(gate.stop("r2", now: 61 * second) == false)
        #expect(gate.admit(now: 61 * second)?.wait == .seconds(120))
        #expect(gate.admit(now: 181 * second) == nil)
        #expect(gate.accepted() == true)
        #expect(gate.accepted() == false)
        #expect(gate.admit(now: 182 * second) == nil)
        #expect(gate.reason == nil)
    }

    @Test("a trial nobody answers does not stop the lane for ever")
    func lostTrial() {
        var gate = LaneGate()
        _ = gate.stop("r", now: 0)
        #expect(gate.admit(now: 60 * second) == nil)
        #expect(gate.admit(now: 119 * second) != nil)
        #expect(gate.admit(now: 120 * second) == nil)
    }
}
