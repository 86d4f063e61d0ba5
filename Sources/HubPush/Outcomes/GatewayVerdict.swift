internal import HubDelivery
internal import HubHTTPClient

/// Full meaning of an answer: the caller's outcome, and the lane's action.
struct GatewayVerdict: Equatable {
    enum Action: Equatable {
        case none
        /// Close the connection; the caller's retry will use a new one.
        case newConnection
        /// Close the connection, and send again over a new one, once.
        case resendOnNewConnection
        /// APNs calls the provider token expired: sign a new one if allowed, use a new connection, send again once.
        case replaceProviderToken
        /// APNs has seen too many provider tokens: return to the older one, and sign none for a while.
        case keepOlderProviderToken
        /// FCM refuses the access token: fetch another one, send again once.
        case replaceAccessToken
        /// Wrong credentials or configuration: every further push over the lane would fail too.
        case stopLane
        /// Wrong topic: every further push of this app to this environment would fail too.
        case stopTopic
        /// An unproven token may belong to the other environment: try that once. For other tokens `judgeToken`.
        case tryOtherEnvironment
        /// The token is dead unless too many others are called dead.
        case judgeToken
        /// `judgeToken` if a notification of the same shape was accepted lately; else the complaint may concern the payload.
        case judgeTokenOfKnownShape
        /// The token belongs to another project: keep it, and do not send to it for a while.
        case markForeign
    }

    /// Final if the action is impossible, or no longer possible.
    var outcome: PushOutcome
    var action = Action.none
    /// Alarm for the operator.
    var alarm: PushAlarm?

    static func rejected(_ reason: String, _ action: Action = .none) -> GatewayVerdict {
        GatewayVerdict(outcome: .rejected(reason: reason), action: action)
    }
    /// A mistake outside the push, which waits until the mistake is corrected, or expires.
    static func stopped(_ reason: String, _ action: Action, _ alarm: PushAlarm) -> GatewayVerdict {
        GatewayVerdict(outcome: .retry(after: nil, reason: RetryCause.lane.reason(reason)), action: action, alarm: alarm)
    }
    static func doubtful(_ reason: String, _ action: Action) -> GatewayVerdict {
        GatewayVerdict(outcome: .dead(reason: reason, since: nil, isCertain: false), action: action)
    }
    static func retry(_ cause: RetryCause, _ detail: String, after: Duration? = nil, _ action: Action = .none) -> GatewayVerdict {
        GatewayVerdict(outcome: .retry(after: after, reason: cause.reason(detail)), action: action)
    }

    /// Verdict on a call without an answer.
    init(_ error: HTTPClientError) {
        switch error.reason {
        case .invalidCall: self = .rejected("the request cannot be sent: \(error.detail)")
        case .queueFull, .waitedTooLong, .shutDown, .withdrawn: self = .retry(.lane, error.detail)
        case .transport:
            let seen = error.delivery == .notSent ? "not sent" : "outcome unknown"
            self = .retry(.transport, "\(error.detail) (\(seen))")
        }
    }

    init(outcome: PushOutcome, action: Action = .none, alarm: PushAlarm? = nil) {
        self.outcome = outcome
        self.action = action
        self.alarm = alarm
    }

    /// The same verdict with an alarm.
    func raising(_ alarm: PushAlarm) -> GatewayVerdict { GatewayVerdict(outcome: outcome, action: action, alarm: alarm) }
}

/// Text from a gateway, made safe for logs and reasons: only identifiers pass.
enum PeerText {
    private static let countMax = 64

    /// Letters, digits, `_`, `-`, `.`, `[`, `]`; others become `?`. At most 64 characters.
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
