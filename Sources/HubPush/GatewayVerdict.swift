internal import HubDelivery
internal import HubHTTPClient

/// What an answer means, in full: the outcome for the caller, and what the lane itself has to do about it.
struct GatewayVerdict: Equatable {
    enum Action: Equatable {
        case none
        /// Give the connection up; the caller's retry will come over a new one.
        case newConnection
        /// Give the connection up and send again over a new one, once.
        case resendOnNewConnection
        /// APNs calls our provider token too old: sign a new one if the floor allows, new connection, send again once.
        case replaceProviderToken
        /// APNs has seen too many provider tokens: go back to the older one and sign none for a while.
        case keepOlderProviderToken
        /// FCM does not know our access token: fetch another, send again once.
        case replaceAccessToken
        /// A mistake in credentials or configuration: every further push would fail the same way.
        case stopLane
    }

    /// Valid as it stands when the action is not, or no longer, possible.
    var outcome: PushOutcome
    var action = Action.none

    static func rejected(_ reason: String, _ action: Action = .none) -> GatewayVerdict {
        GatewayVerdict(outcome: .rejected(reason: reason), action: action)
    }
    static func retry(_ cause: RetryCause, _ detail: String, after: Duration? = nil, _ action: Action = .none) -> GatewayVerdict
    {
        GatewayVerdict(outcome: .retry(after: after, reason: cause.reason(detail)), action: action)
    }

    /// A call without an answer.
    init(_ error: HTTPClientError) {
        switch error.reason {
        case .invalidCall: self = .rejected("the request cannot be sent: \(error.detail)")
        case .queueFull, .waitedTooLong, .shutDown: self = .retry(.lane, error.detail)
        case .transport:
            let seen = error.delivery == .notSent ? "not sent" : "outcome unknown"
            self = .retry(.transport, "\(error.detail) (\(seen))")
        }
    }

    init(outcome: PushOutcome, action: Action = .none) {
        self.outcome = outcome
        self.action = action
    }
}

/// Text from a gateway, made safe for logs and reasons: gateways' own identifiers pass, anything else does not.
enum PeerText {
    private static let countMax = 64

    /// Letters, digits, `_`, `-`, `.`, `[`, `]`; others become `?`. At most 64.
    static func identifier(_ text: String) -> String {
        String(
            text.unicodeScalars.prefix(countMax).map { scalar -> Character in
                let isPlain =
                    scalar.isASCII
                    && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar)
                        || "_-.[]".unicodeScalars.contains(scalar))
                return isPlain ? Character(scalar) : "?"
            })
    }
}
