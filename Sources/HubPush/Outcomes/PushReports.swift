package import HubCore
package import HubDelivery

/// A problem with a gateway that needs attention. Operators filter by the name, so names never change.
package enum PushAlarm: String, Sendable, CaseIterable {
    /// The key, its id or the team id is wrong.
    case apnsBadKey = "apns_bad_key"
    /// The key may not send to the topic.
    case apnsBadTopic = "apns_bad_topic"
    /// The key is for the other environment only.
    case apnsWrongEnvironmentKey = "apns_wrong_environment_key"
    /// APNs refuses without details.
    case apnsForbidden = "apns_forbidden"
    /// APNs calls a fresh provider token expired: the clock is wrong.
    case apnsProviderTokenExpired = "apns_provider_token_expired"
    /// A proxy breaks HTTP/2, the only version of APNs.
    case apnsWithoutHTTP2 = "apns_without_http2"
    /// Provider tokens are signed too often.
    case apnsTokenUpdates = "apns_token_updates"
    /// So many device tokens are called bad that the topic or the environment must be wrong.
    case apnsBadTokens = "apns_bad_tokens"
    /// APNs does not answer, or answers 5xx: pushes wait.
    case apnsOutage = "apns_outage"
    /// The token endpoint refuses the service account.
    case fcmAccountRefused = "fcm_account_refused"
    /// FCM refuses fresh access tokens.
    case fcmUnauthenticated = "fcm_unauthenticated"
    /// The API is not enabled, or the account lacks the role.
    case fcmPermissionDenied = "fcm_permission_denied"
    /// The project does not exist.
    case fcmNotFound = "fcm_not_found"
    /// Several tokens belong to another Firebase project.
    case fcmSenderMismatch = "fcm_sender_id_mismatch"
    /// The APNs or web-push key uploaded to the Firebase project is wrong.
    case fcmThirdPartyAuth = "fcm_third_party_auth"
    /// Too many tokens are called unregistered to be believed.
    case fcmUnregistered = "fcm_unregistered"
    /// FCM or the token endpoint does not answer, or answers 5xx: pushes wait.
    case fcmOutage = "fcm_outage"
}

/// A token that its gateway called dead, without contradicting answers.
package struct DeadToken: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
    /// The app whose push was refused; other apps keep the token.
    package var app: String
    package var provider: PushProvider
    package var token: String
    /// Time of the gateway's answer in milliseconds since 1970. A later registration of the token stays valid.
    package var since: Int64

    package var description: String { "a token of \(provider.rawValue) called dead at \(since)" }
    package var customMirror: Mirror { Mirror(self, children: ["provider": provider, "since": since]) }
}

/// Reports of the gateways beyond single pushes: alarms and dead tokens. Any thread.
package final class PushReports: Sendable {
    /// Receives an alarm, the lane's name and a sentence with the remedy.
    package typealias AlarmSink = @Sendable (_ alarm: PushAlarm, _ lane: String, _ detail: String) -> Void
    /// Receives a token to remove.
    package typealias TokenSink = @Sendable (DeadToken) -> Void

    /// Time before a lane's alarm is repeated; alarms in between are only counted.
    package static let repeatAfter = Duration.seconds(600)
    private static let repeatNanoseconds = UInt64(repeatAfter.components.seconds) * nanosecondsPerSecond
    /// Remembered lanes with alarms. If exceeded, an alarm may be repeated sooner.
    static let placesMax = 1_000

    private struct Place: Hashable {
        let alarm: PushAlarm
        let lane: String
    }

    private struct State {
        var alarmSink: AlarmSink?
        var tokenSink: TokenSink?
        var toldAt: [Place: UInt64] = [:]
        var counts: [PushAlarm: Int] = [:]
    }

    private let time: any TimeSource
    private let state = Guarded(State())

    package init(time: any TimeSource) { self.time = time }

    /// Sets the handler of alarms; it must not block.
    package func onAlarm(_ sink: @escaping AlarmSink) { state.withLock { $0.alarmSink = sink } }

    /// Sets the handler of tokens to remove; it must not block.
    package func onDeadToken(_ sink: @escaping TokenSink) { state.withLock { $0.tokenSink = sink } }

    /// Number of alarms since the start, including those not repeated.
    package var alarms: [PushAlarm: Int] { state.withLock { $0.counts } }

    /// - Parameters:
    ///   - lane: gateway, environment and credential, by ids without secrets.
    ///   - detail: the answer and the remedy; free of secrets and tokens.
    func raise(_ alarm: PushAlarm, lane: String, _ detail: String) {
        let sink: AlarmSink? = state.withLock(at: time) { state, now in
            state.counts[alarm, default: 0] += 1
            let place = Place(alarm: alarm, lane: lane)
            if let told = state.toldAt[place], now < told + Self.repeatNanoseconds { return nil }
            if state.toldAt.count >= Self.placesMax { state.toldAt = [:] }
            state.toldAt[place] = now
            return state.alarmSink
        }
        sink?(alarm, lane, detail)
    }

    func condemn(_ token: DeadToken) { state.withLock { $0.tokenSink }?(token) }
}
