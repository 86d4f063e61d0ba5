import HubDelivery
import Testing

@Suite("RetryPolicy")
struct RetryPolicyTests {
    private static let hour: Int64 = 3_600_000
    /// 2026-01-09T01:00:00Z
    private let now: Int64 = 1_767_920_400_000

    private func next(
        _ attempt: Int, _ cause: RetryCause, after: Duration? = nil, elapsed: Int64 = 0, life: Int64 = hour * 2, random: Double = 0.5
    ) -> RetryPolicy.Decision {
        RetryPolicy.next(
            attempt: attempt, outcome: .retry(after: after, reason: cause.reason("x")), now: now + elapsed, firstAttemptAt: now,
            expiresAt: now + life, random: random)
    }

    @Test(
        "transport and 5xx wait ten seconds and double, spread by half, at most ten minutes",
        arguments: [
            (1, 0.0, 5_000), (1, 0.5, 10_000), (2, 0.5, 20_000), (3, 0.5, 40_000), (4, 0.5, 80_000), (7, 0.5, 600_000), (60, 0.5, 600_000),
        ] as [(Int, Double, Int64)])
    func exponential(attempt: Int, random: Double, milliseconds: Int64) {
        for cause in [RetryCause.transport, .unavailable, .lane] {
            #expect(next(attempt, cause, random: random) == .at(now + milliseconds))
        }
    }

    @Test("quotas begin at a minute, one device's at five to sixty seconds")
    func throttled() {
        #expect(next(1, .throttled) == .at(now + 60_000))
        #expect(next(2, .throttled) == .at(now + 120_000))
        #expect(next(1, .deviceThrottled, random: 0) == .at(now + 5_000))
        #expect(next(9, .deviceThrottled, random: 0.5) == .at(now + 32_500))
    }

    @Test("what the gateway asks for is the least wait")
    func asked() {
        #expect(next(1, .unavailable, after: .seconds(300)) == .at(now + 300_000))
        #expect(next(3, .unavailable, after: .seconds(1)) == .at(now + 40_000))
        #expect(next(1, .unavailable, after: .seconds(Int64.max / 2)) == .giveUp(reason: "expires before the next attempt"))
    }

    @Test("an event of a minute may have one early retry after a transport error, and only then")
    func early() {
        #expect(next(1, .transport, life: 60_000, random: 0) == .at(now + 1_000))
        #expect(next(1, .transport, life: 60_000, random: 0.75) == .at(now + 1_750))
        #expect(next(2, .transport, elapsed: 2000, life: 60_000) == .at(now + 22_000))
        #expect(next(1, .unavailable, life: 60_000) == .at(now + 10_000))
        #expect(next(1, .transport, life: 60_001) == .at(now + 10_000))
        #expect(next(1, .transport, after: .seconds(5), life: 60_000) == .at(now + 10_000))
    }

    @Test("APNs' 5xx: a minute, then a quarter of an hour; one quick resend when there is less time")
    func apns() {
        #expect(next(1, .apnsUnavailable) == .at(now + 60_000))
        #expect(next(2, .apnsUnavailable) == .at(now + 900_000))
        #expect(next(1, .apnsUnavailable, life: 300_000, random: 0.5) == .at(now + 2_000))
        #expect(next(2, .apnsUnavailable, life: 300_000) == .giveUp(reason: "no further attempt before it expires"))
    }

    @Test("nothing is retried past its life or an hour of failing")
    func deadlines() {
        #expect(next(2, .unavailable, life: 20_000) == .giveUp(reason: "expires before the next attempt"))
        #expect(next(2, .unavailable, life: 20_001) == .at(now + 20_000))
        #expect(next(8, .unavailable, elapsed: Self.hour - 600_000) == .at(now + Self.hour))
        #expect(next(8, .unavailable, elapsed: Self.hour - 599_999) == .giveUp(reason: "failed for an hour"))
    }

    @Test(
        "only a retry is retried",
        arguments: [
            PushOutcome.accepted(providerID: "x"), .dead(reason: "x", since: nil), .rejected(reason: "x"), .skippedUnconfigured,
        ])
    func others(outcome: PushOutcome) {
        let decision = RetryPolicy.next(attempt: 1, outcome: outcome, now: now, firstAttemptAt: now, expiresAt: now + 1000, random: 0)
        #expect(decision == .giveUp(reason: "not retryable"))
    }

    @Test("a cause is read back from its reason", arguments: RetryCause.allCases)
    func causes(cause: RetryCause) {
        #expect(RetryCause(reason: cause.reason("a: b")) == cause)
        #expect(RetryCause(reason: "something else") == nil)
    }
}
