internal import HubCore

/// Reason for a retry; prefix of a retry outcome's reason.
package enum RetryCause: String, Sendable, CaseIterable {
    /// No answer; the gateway may have taken the push.
    case transport
    /// FCM's quota, for the project or a topic.
    case throttled
    /// APNs: too many pushes to this device.
    case deviceThrottled = "device throttled"
    /// FCM is temporarily unavailable.
    case unavailable
    /// APNs is temporarily unavailable.
    case apnsUnavailable = "apns unavailable"
    /// Nothing was sent: the lane is stopped, full or without a credential.
    case lane

    package func reason(_ detail: String) -> String { "\(rawValue): \(detail)" }

    /// The cause that prefixes a retry's reason; nil for other reasons.
    package init?(reason: String) {
        guard let colon = reason.firstIndex(of: ":"), let cause = RetryCause(rawValue: String(reason[..<colon])) else {
            return nil
        }
        self = cause
    }
}

/// Decides about time and end of retries: a pure function of the delivery's state.
package enum RetryPolicy {
    /// Time of the next attempt, or the end of attempts.
    package enum Decision: Equatable, Sendable {
        /// Milliseconds since 1970.
        case at(Int64)
        case giveUp(reason: String)
    }

    /// Longer failures are an outage, or a misread answer (FCM's scaling guide).
    package static let retryingMax = Duration.seconds(60 * 60)
    /// FCM asks for at least ten seconds before a failed request is repeated.
    static let base = Duration.seconds(10)
    static let throttledBase = Duration.seconds(60)
    static let delayMax = Duration.seconds(600)
    static let deviceThrottled = (least: Duration.seconds(5), most: Duration.seconds(60))
    /// Events with at most this lifetime may have one early retry after a transport error.
    static let shortLife = Duration.milliseconds(PushMessage.shortLifeMilliseconds)
    /// Apple asks for 15 minutes after a 5xx; the first retry comes sooner, because short-lived events cannot wait that long.
    static let apnsPatience = (first: Duration.seconds(60), then: Duration.seconds(15 * 60))

    /// - Parameters:
    ///   - attempt: attempts made so far, including this one; at least 1.
    ///   - outcome: of the last attempt; anything but `retry` gives up.
    ///   - now: milliseconds since 1970, like all times here.
    ///   - firstAttemptAt: time of the first attempt; an operator's replay starts anew.
    ///   - expiresAt: end of the notification's lifetime.
    ///   - random: evenly distributed in `0 ..< 1`; spreads retries of pushes that failed together.
    package static func next(
        attempt: Int, outcome: PushOutcome, now: Int64, firstAttemptAt: Int64, expiresAt: Int64, random: Double
    ) -> Decision {
        precondition(attempt > 0 && random >= 0 && random < 1, "attempt \(attempt), random \(random)")
        guard case .retry(let after, let reason) = outcome else { return .giveUp(reason: "not retryable") }
        let own = delay(
            attempt: attempt, cause: RetryCause(reason: reason), asked: after,
            life: .milliseconds(expiresAt - firstAttemptAt), left: .milliseconds(expiresAt - now), random: random)
        guard let own else { return .giveUp(reason: "no further attempt before it expires") }
        // A gateway may ask for any wait. The bound avoids an overflow, and exceeds the longest retrying anyway.
        let due = now + min(max(own, after ?? .zero), retryingMax + retryingMax).milliseconds
        if due >= expiresAt { return .giveUp(reason: "expires before the next attempt") }
        if due > firstAttemptAt + retryingMax.milliseconds { return .giveUp(reason: "failed for an hour") }
        return .at(due)
    }

    private static func delay(
        attempt: Int, cause: RetryCause?, asked: Duration?, life: Duration, left: Duration, random: Double
    ) -> Duration? {
        switch cause {
        case .transport where attempt == 1 && life <= shortLife && asked == nil: return .seconds(1 + random)
        case .deviceThrottled:
            return deviceThrottled.least + (deviceThrottled.most - deviceThrottled.least) * random
        case .apnsUnavailable:
            if left <= apnsPatience.then { return attempt == 1 ? .seconds(1 + 2 * random) : nil }
            return attempt == 1 ? apnsPatience.first : apnsPatience.then
        case .throttled: return exponential(base: throttledBase, attempt: attempt, random: random)
        case .transport, .unavailable, .lane, nil: return exponential(base: base, attempt: attempt, random: random)
        }
    }

    private static func exponential(base: Duration, attempt: Int, random: Double) -> Duration {
        // Ten doublings exceed the cap for any base.
        min(delayMax, base * (1 << min(attempt - 1, 10))) * (0.5 + random)
    }
}
