package import HubCore
package import HubDelivery
internal import Synchronization

/// Something about a gateway that somebody has to look at, by a name that does not change: operators filter by it.
package enum PushAlarm: String, Sendable, CaseIterable {
    /// The key, its id or the team id is wrong.
    case apnsBadKey = "apns_bad_key"
    /// The topic is not one the key may send to.
    case apnsBadTopic = "apns_bad_topic"
    /// The key is for the other environment only.
    case apnsWrongEnvironmentKey = "apns_wrong_environment_key"
    /// APNs refuses without saying more.
    case apnsForbidden = "apns_forbidden"
    /// A provider token signed a moment ago counts as expired: the clock is wrong.
    case apnsProviderTokenExpired = "apns_provider_token_expired"
    /// A proxy in between spoils HTTP/2, which is all that APNs speaks.
    case apnsWithoutHTTP2 = "apns_without_http2"
    /// Somebody signs provider tokens too often.
    case apnsTokenUpdates = "apns_token_updates"
    /// So many device tokens are called bad that the topic or the environment must be wrong.
    case apnsBadTokens = "apns_bad_tokens"
    /// APNs does not answer, or answers 5xx: pushes wait.
    case apnsOutage = "apns_outage"
    /// The token endpoint refuses the service account.
    case fcmAccountRefused = "fcm_account_refused"
    /// FCM refuses access tokens fetched a moment ago.
    case fcmUnauthenticated = "fcm_unauthenticated"
    /// The API is not enabled, or the account lacks the role.
    case fcmPermissionDenied = "fcm_permission_denied"
    /// There is no such project.
    case fcmNotFound = "fcm_not_found"
    /// Several tokens belong to another Firebase project.
    case fcmSenderMismatch = "fcm_sender_id_mismatch"
    /// The APNs or web-push key uploaded to the Firebase project is wrong.
    case fcmThirdPartyAuth = "fcm_third_party_auth"
    /// So many tokens are called unregistered that they are not believed.
    case fcmUnregistered = "fcm_unregistered"
    /// FCM or the token endpoint does not answer, or answers 5xx: pushes wait.
    case fcmOutage = "fcm_outage"
}

/// A token that its gateway called dead, and that other answers do not speak for.
package struct DeadToken: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
    /// The app whose push was refused; other apps keep the token.
    package var app: String
    package var provider: PushProvider
    package var token: String
    /// When the gateway said so, milliseconds since 1970: a registration after it is another matter.
    package var since: Int64

    package var description: String { "a token of \(provider.rawValue) called dead at \(since)" }
    package var customMirror: Mirror { Mirror(self, children: ["provider": provider, "since": since]) }
}

/// Where the gateways tell what concerns no single push: alarms, and tokens that are dead after all. Callable from any thread.
package final class PushReports: Sendable {
    package typealias AlarmSink = @Sendable (_ alarm: PushAlarm, _ lane: String, _ detail: String) -> Void
    package typealias TokenSink = @Sendable (DeadToken) -> Void

    /// One alarm of one lane is told again after this long, and counted in between.
    package static let repeatAfter = Duration.seconds(600)
    private static let repeatNanoseconds = UInt64(repeatAfter.components.seconds) * nanosecondsPerSecond
    /// Places an alarm can come from that are remembered; beyond them it may be told more often.
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
    private let state = Mutex(State())

    package init(time: any TimeSource) { self.time = time }

    /// What is called with each alarm from now on; it must not block.
    package func onAlarm(_ sink: @escaping AlarmSink) { state.withLock { $0.alarmSink = sink } }

    /// What is called with each token to remove from now on; it must not block.
    package func onDeadToken(_ sink: @escaping TokenSink) { state.withLock { $0.tokenSink = sink } }

    /// How often each alarm was raised since the start, those not told again included.
    package var alarms: [PushAlarm: Int] { state.withLock { $0.counts } }

    /// - Parameters:
    ///   - lane: which gateway, environment and credential, by ids that are no secrets.
    ///   - detail: what was answered and what to do; free of secrets and tokens.
    func raise(_ alarm: PushAlarm, lane: String, _ detail: String) {
        let now = time.monotonicNanoseconds
        let sink: AlarmSink? = state.withLock { state in
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
