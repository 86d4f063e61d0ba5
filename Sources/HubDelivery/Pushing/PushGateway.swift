/// Form of the text that addresses a push.
package enum TargetForm: String, Sendable, CaseIterable {
    /// A registration token of FCM, or a device token of APNs.
    case token
    /// A Firebase installation id.
    case fid
    /// A topic of FCM, without `/topics/`.
    case topic
    /// An expression over topics of FCM.
    case condition

    /// Whether the text addresses one device, instead of any number.
    package var isOfDevice: Bool { self == .token || self == .fid }
}

/// Address of one push, looked up when it is sent, because tokens change between decision and sending.
package struct PushTarget: Sendable, Equatable {
    /// The app whose credentials send the push.
    package var app: String
    /// Tandem's own device id: part of the stable request id, never shown to the gateway.
    package var device: String
    /// Push service.
    package var provider: PushProvider
    /// System of the device.
    package var platform: DevicePlatform
    /// Token, Firebase installation id, topic or condition, according to `form`.
    package var token: String
    /// Form of `token`.
    package var form: TargetForm
    /// Apple's environment of the token.
    package var environment: APNsEnvironment
    /// Whether the gateway has accepted this very token before, in this environment.
    package var isProven: Bool

    /// An address of a device token unless `form` says otherwise.
    package init(
        app: String = "", device: String, provider: PushProvider, platform: DevicePlatform, token: String, form: TargetForm = .token,
        environment: APNsEnvironment, isProven: Bool = false
    ) {
        self.app = app
        self.device = device
        self.provider = provider
        self.platform = platform
        self.token = token
        self.form = form
        self.environment = environment
        self.isProven = isProven
    }
}

/// Result of one attempt.
package enum PushOutcome: Sendable, Equatable {
    /// The gateway accepted the push. `providerID` is its name for the message. `environment` is that of the token, if it differs from the
    /// target's.
    case accepted(providerID: String, environment: APNsEnvironment? = nil)
    /// Try again, not before `after` if the gateway said so. The reason is short and free of secrets and tokens.
    case retry(after: Duration?, reason: String)
    /// The token is dead; `since` is in milliseconds since 1970, if the gateway told.
    ///
    /// An uncertain token is not removed on this answer alone: the gateway reports separately once it is certain.
    case dead(reason: String, since: Int64?, isCertain: Bool = true)
    /// The gateway will never accept the push, however often it is sent.
    case rejected(reason: String)
    /// No credentials for this provider: logged as a would-be push.
    case skippedUnconfigured
}

/// Sends notifications: the contract between delivery and the gateways.
package protocol PushGateway: Sendable {
    /// Takes one push without blocking. `completion` runs exactly once, on a thread of the gateway's.
    ///
    /// One call is one attempt: the caller backs off and tries again.
    func send(_ message: PushMessage, to target: PushTarget, completion: @escaping @Sendable (PushOutcome) -> Void)
    /// Takes one push that may be withdrawn until it leaves.
    /// - Parameter departs: asked when the push leaves, on a thread of the gateway's, and quick; whether it may go. A push that may not
    ///   ends as a retry.
    func send(
        _ message: PushMessage, to target: PushTarget, departs: @escaping @Sendable () -> Bool,
        completion: @escaping @Sendable (PushOutcome) -> Void)
    /// Number of pushes that can go out on a route now; nothing is reserved. Callable from any thread.
    func room(on route: PushRoute) -> PushRoom
    /// Reserves places for pushes that are sent right after. The answers are in the same order; urgent pushes should be first. A push
    /// without a place is sent all the same.
    func admit(_ candidates: [PushCandidate]) -> [PushAdmission]
}

extension PushGateway {
    /// Default for a gateway without a queue: a push leaves when it is handed over.
    package func send(
        _ message: PushMessage, to target: PushTarget, departs: @escaping @Sendable () -> Bool,
        completion: @escaping @Sendable (PushOutcome) -> Void
    ) {
        if departs() { send(message, to: target, completion: completion) } else { completion(.retry(after: nil, reason: "withdrawn")) }
    }
}
