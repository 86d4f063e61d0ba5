internal import HubDelivery

/// Outcomes of one provider's pushes since the start.
package struct PushCounts: Sendable, Equatable {
    /// An outcome with its reason, both from closed sets: labels of a metric.
    package struct Cause: Sendable, Hashable {
        /// `PushOutcome.name`.
        package var outcome: String
        /// `PushReason.word`; empty when accepted.
        package var reason: String

        package init(outcome: String, reason: String) {
            self.outcome = outcome
            self.reason = reason
        }
    }

    /// Accepted by the gateway.
    package var accepted = 0
    /// Failed attempts that may be retried.
    package var retry = 0
    /// Refused because the token is dead.
    package var dead = 0
    /// Refused for good.
    package var rejected = 0
    /// Not sent, without credentials for the provider.
    package var skippedUnconfigured = 0
    /// Outcomes other than accepted, by reason.
    private var troubles: [Cause: Int] = [:]
    /// All outcomes by reason.
    package var causes: [Cause: Int] {
        var causes = troubles
        if accepted > 0 { causes[Cause(outcome: "accepted", reason: "")] = accepted }
        return causes
    }

    package init() {}

    mutating func note(_ outcome: PushOutcome) {
        switch outcome {
        case .accepted: accepted += 1
        case .retry: retry += 1
        case .dead: dead += 1
        case .rejected: rejected += 1
        case .skippedUnconfigured: skippedUnconfigured += 1
        }
        if case .accepted = outcome { return }
        troubles[Cause(outcome: outcome.name, reason: PushReason.word(of: outcome)), default: 0] += 1
    }
}
