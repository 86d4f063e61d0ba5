package import HubHTTPClient

/// The result of one attempt to deliver a batch, for the batch and for its endpoint.
package enum AttemptOutcome: Sendable, Equatable {
    /// Any 2xx.
    case delivered
    /// No answer, or a temporary refusal. Every other batch would fare the same.
    case unreachable(reason: String)
    /// Any other answer, redirects included. The cause may be this batch.
    case refused(status: Int)

    /// 429, and a proxy's statuses for an unreachable backend.
    private static let notNow: Set<Int> = [429, 502, 503, 504]

    /// The meaning of an answer's status, or of its absence.
    package init(_ result: Result<HTTPAnswer, HTTPClientError>) {
        switch result {
        case .success(let answer) where (200..<300).contains(answer.status): self = .delivered
        case .success(let answer) where Self.notNow.contains(answer.status): self = .unreachable(reason: "http \(answer.status)")
        case .success(let answer): self = .refused(status: answer.status)
        case .failure(let error): self = .unreachable(reason: error.detail)
        }
    }

    /// For logs; nil after a success.
    package var reason: String? {
        switch self {
        case .delivered: nil
        case .unreachable(let reason): reason
        case .refused(let status): "http \(status)"
        }
    }
}
