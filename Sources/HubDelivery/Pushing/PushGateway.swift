/// What the text of a push's target is.
package enum TargetForm: String, Sendable, CaseIterable {
    /// A registration token of FCM, or a device token of APNs.
    case token
    /// A Firebase installation id.
    case fid
    /// A topic of FCM, without `/topics/`.
    case topic
    /// An expression over topics of FCM.
    case condition

    /// Whether it names one device, and not a number of them.
    package var isOfDevice: Bool { self == .token || self == .fid }
}

/// Where one push goes: resolved when it is sent, because tokens change between decision and sending.
package struct PushTarget: Sendable, Equatable {
    /// The app whose credentials send it.
    package var app: String
    /// Tandem's own device id: part of the stable request id, never shown to the gateway.
    package var device: String
    package var provider: PushProvider
    package var platform: DevicePlatform
    package var token: String
    package var form: TargetForm
    package var environment: APNsEnvironment
    /// The gateway has accepted this very token before, in this environment.
    package var isProven: Bool

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

/// What became of one attempt.
package enum PushOutcome: Sendable, Equatable {
    /// The gateway took it; its name for the message, and the environment it turned out to belong to where that is another one
    /// than the target's.
    case accepted(providerID: String, environment: APNsEnvironment? = nil)
    /// Try again, not before `after` when the gateway said so. The reason is short and free of secrets and tokens.
    case retry(after: Duration?, reason: String)
    /// The token is dead; `since` in milliseconds since 1970 when the gateway told.
    ///
    /// Not certain: it is not to be removed on this answer alone. The gateway tells separately when it is.
    case dead(reason: String, since: Int64?, isCertain: Bool = true)
    /// Will not be accepted however often it is sent.
    case rejected(reason: String)
    /// No credentials for this provider: logged as a would-be push.
    case skippedUnconfigured
}

/// Sends notifications: the contract between delivery and the gateways.
package protocol PushGateway: Sendable {
    /// Takes one push. Never blocks; `completion` runs exactly once, on a thread of the gateway's.
    ///
    /// One call is one attempt: backing off and trying again is the caller's.
    func send(_ message: PushMessage, to target: PushTarget, completion: @escaping @Sendable (PushOutcome) -> Void)
    /// The same for a push that may be kept back until it leaves.
    /// - Parameter departs: asked in that moment, on a thread of the gateway's, and quick: whether the push is still to go. One that is not
    ///   ends as a retry.
    func send(
        _ message: PushMessage, to target: PushTarget, departs: @escaping @Sendable () -> Bool,
        completion: @escaping @Sendable (PushOutcome) -> Void)
    /// What can go out on a route now: a question that reserves nothing. Callable from any thread.
    func room(on route: PushRoute) -> PushRoom
    /// Asks for places for pushes that are sent right after, one answer each, in their order: the urgent ones should be first.
    /// What is sent without asking is sent all the same.
    func admit(_ candidates: [PushCandidate]) -> [PushAdmission]
}

extension PushGateway {
    /// Where nothing waits inside, a push leaves as it is handed over.
    package func send(
        _ message: PushMessage, to target: PushTarget, departs: @escaping @Sendable () -> Bool,
        completion: @escaping @Sendable (PushOutcome) -> Void
    ) {
        if departs() { send(message, to: target, completion: completion) } else { completion(.retry(after: nil, reason: "withdrawn")) }
    }
}
