package import HubHTTPClient

/// What an attempt to deliver a batch says about the batch and about its endpoint.
package enum AttemptOutcome: Sendable, Equatable {
    /// Any 2xx.
    case delivered
    /// No answer, or one that says "not now": every other batch would fare the same.
    case unreachable(reason: String)
    /// Any other answer, redirects included: it may be about this batch.
    case refused(status: Int)

    /// 429, and what a proxy says when there is nobody behind it.
    private static let notNow: Set<Int> = [429, 502, 503, 504]

    package init(_ result: Result<HTTPAnswer, HTTPClientError>) {
        switch result {
        case .success(let answer) where (200..<300).contains(answer.status): self = .delivered
        case .success(let answer) where Self.notNow.contains(answer.status): self = .unreachable(reason: "http \(answer.status)")
        case .success(let answer): self = .refused(status: answer.status)
        case .failure(let error): self = .unreachable(reason: error.detail)
        }
    }

    /// For logs; nil when there is nothing wrong.
    package var reason: String? {
        switch self {
        case .delivered: nil
        case .unreachable(let reason): reason
        case .refused(let status): "http \(status)"
        }
    }
}
