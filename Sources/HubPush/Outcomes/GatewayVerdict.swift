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
        /// A mistake in credentials or configuration: every further push over the lane would fail the same way.
        case stopLane
        /// A mistake in the topic: every further push of this app to this environment would fail the same way.
        case stopTopic
        /// Where the gateway never accepted this token, it may belong to the other environment: ask there, once. Else `judgeToken`.
        case tryOtherEnvironment
        /// The token is dead if not too many others are called so.
        case judgeToken
        /// As `judgeToken`, when a notification of the same shape was accepted lately; else the payload may be meant.
        case judgeTokenOfKnownShape
        /// The token is another project's: keep it, and spare the gateway the question for a while.
        case markForeign
    }

    /// Valid as it stands when the action is not, or no longer, possible.
    var outcome: PushOutcome
    var action = Action.none
    /// What somebody has to be told.
    var alarm: PushAlarm?

    static func rejected(_ reason: String, _ action: Action = .none) -> GatewayVerdict {
        GatewayVerdict(outcome: .rejected(reason: reason), action: action)
    }
    /// A mistake that is not the push's: it waits until somebody has put things right, or it expires.
    static func stopped(_ reason: String, _ action: Action, _ alarm: PushAlarm) -> GatewayVerdict {
        GatewayVerdict(outcome: .retry(after: nil, reason: RetryCause.lane.reason(reason)), action: action, alarm: alarm)
    }
    static func doubtful(_ reason: String, _ action: Action) -> GatewayVerdict {
        GatewayVerdict(outcome: .dead(reason: reason, since: nil, isCertain: false), action: action)
    }
    static func retry(_ cause: RetryCause, _ detail: String, after: Duration? = nil, _ action: Action = .none) -> GatewayVerdict
    {
        GatewayVerdict(outcome: .retry(after: after, reason: cause.reason(detail)), action: action)
    }

    /// A call without an answer.
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

    /// The same with an alarm.
    func raising(_ alarm: PushAlarm) -> GatewayVerdict { GatewayVerdict(outcome: outcome, action: action, alarm: alarm) }
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
