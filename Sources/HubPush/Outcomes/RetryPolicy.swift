internal import HubCore
package import HubDelivery

/// Why a push should be tried again; stands at the beginning of a retry outcome's reason.
package enum RetryCause: String, Sendable, CaseIterable {
    /// No answer; the gateway may have taken it.
    case transport
    /// FCM's quota, for the project or a topic.
    case throttled
    /// APNs: too many pushes to this device.
    case deviceThrottled = "device throttled"
    /// FCM cannot at the moment.
    case unavailable
    /// APNs cannot at the moment.
    case apnsUnavailable = "apns unavailable"
    /// Nothing was sent: the lane is stopped, full or without a credential.
    case lane

    func reason(_ detail: String) -> String { "\(rawValue): \(detail)" }

    /// The cause named at the beginning of a retry's reason; nil for reasons of other making.
    package init?(reason: String) {
        guard let colon = reason.firstIndex(of: ":"), let cause = RetryCause(rawValue: String(reason[..<colon])) else {
            return nil
        }
        self = cause
    }
}

/// When to try again, if at all: a pure function of what is known about the delivery.
package enum RetryPolicy {
    package enum Decision: Equatable, Sendable {
        /// Milliseconds since 1970.
        case at(Int64)
        case giveUp(reason: String)
    }

    /// After this long it is an outage, or we misread an answer (FCM's scaling guide).
    package static let retryingMax = Duration.seconds(60 * 60)
    /// FCM asks for at least ten seconds before a failed request is repeated.
    static let base = Duration.seconds(10)
    static let throttledBase = Duration.seconds(60)
    static let delayMax = Duration.seconds(600)
    static let deviceThrottled = (least: Duration.seconds(5), most: Duration.seconds(60))
    /// Events that live no longer than this may have one early retry after a transport error.
    static let shortLife = Duration.milliseconds(PushMessage.shortLifeMilliseconds)
    /// Apple wants 15 minutes after a 5xx, which a question with a timer does not have.
    static let apnsPatience = (first: Duration.seconds(60), then: Duration.seconds(15 * 60))

    /// - Parameters:
    ///   - attempt: attempts made so far, this one included; at least 1.
    ///   - outcome: of the last attempt; anything but `retry` gives up.
    ///   - now: milliseconds since 1970, like all moments here.
    ///   - firstAttemptAt: when the first of these attempts was made: what an operator replays begins anew.
    ///   - expiresAt: when the notification is worth nothing any more.
    ///   - random: evenly distributed in `0 ..< 1`; spreads the retries of many pushes that failed together.
    package static func next(
        attempt: Int, outcome: PushOutcome, now: Int64, firstAttemptAt: Int64, expiresAt: Int64, random: Double
    ) -> Decision {
        precondition(attempt > 0 && random >= 0 && random < 1, "attempt \(attempt), random \(random)")
        guard case .retry(let after, let reason) = outcome else { return .giveUp(reason: "not retryable") }
        let own = delay(
            attempt: attempt, cause: RetryCause(reason: reason), asked: after,
            life: .milliseconds(expiresAt - firstAttemptAt), left: .milliseconds(expiresAt - now), random: random)
        guard let own else { return .giveUp(reason: "no further attempt before it expires") }
        // A gateway may ask for any wait; beyond the longest retrying it makes no difference, and it must not overflow.
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
        // Ten doublings are past the cap whatever the base.
        min(delayMax, base * (1 << min(attempt - 1, 10))) * (0.5 + random)
    }
}
