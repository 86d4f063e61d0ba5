internal import HubCore
package import HubDefinitions

/// Whether an app is on the screen, as far as it says.
package enum AppState: String, Sendable, CaseIterable {
    case foreground, background
    /// The app has said nothing, as stock clients do; counts as foreground.
    case unknown
}

/// The recipients' surfaces of one event, and the reasons: a pure function of the state at publish time.
///
/// Presence chooses how long the push waits for a receipt, and nothing else: nobody is left to the socket alone.
package struct Decision: Sendable, Equatable {
    /// A push that is due with the commit.
    package struct Push: Sendable, Equatable {
        /// The device's id.
        package var device: String
        /// The device's state, or the policy's name when the policy asks for a push in any case.
        package var reason: String
    }

    /// A receipt that is awaited before a push.
    package struct Awaited: Sendable, Equatable {
        /// Nil for all devices of the participant together.
        package var device: String?
        /// Wait from the commit.
        package var wait: Duration
        /// State that chose the wait.
        package var reason: String
    }

    /// Everything the decision depends on.
    package struct Input {
        /// The policy for the recipient.
        package var policy: Policy
        /// Time at which the event expires, in milliseconds since 1970.
        package var expiresAt: Int64
        /// Time of the decision, in milliseconds since 1970.
        package var now: Int64
        /// Whether the recipient caused the event.
        package var isActor: Bool
        /// Scope of a device's signs of life.
        package var scope: SuppressScope
        /// The participant's devices, reachable or not.
        package var devices: [Device]
        /// Age at which a device's token is no longer tried.
        package var tokenAge: TokenAge
        /// State of the participant (nil) or of one device, and the milliseconds for which a return is awaited.
        package var reach: (_ device: String?) -> (state: DeviceState, graceLeft: Int64)

        /// An input whose recipient did not cause the event, and whose devices count together, unless given.
        package init(
            policy: Policy, expiresAt: Int64, now: Int64, isActor: Bool = false, scope: SuppressScope = .participant, devices: [Device],
            tokenAge: TokenAge = .standard, reach: @escaping (_ device: String?) -> (state: DeviceState, graceLeft: Int64)
        ) {
            self.policy = policy
            self.expiresAt = expiresAt
            self.now = now
            self.isActor = isActor
            self.scope = scope
            self.devices = devices
            self.tokenAge = tokenAge
            self.reach = reach
        }
    }

    /// State of the participant; nil if it did not matter.
    package var state: DeviceState?
    /// Pushes that are due with the commit, for the newest registration first.
    package var pushes: [Push] = []
    /// Receipts that are awaited before a push.
    package var awaited: [Awaited] = []
    /// Reason for the trail: a device state, the policy's name, `no device`, `no token`, `permission denied`, `token stale`, `token
    /// expired`, `actor`, `expired`.
    package var reason: String
    /// An end at the commit: `undeliverable`, `expired`, `cancelled`. Nil for none. The recipient's note tells it, or one row without a
    /// device.
    package var end: PushState?

    /// Most devices of one participant that get a push of one event.
    package static let devicesMax = 25
    /// Least lifetime with which an alert is still sent, in milliseconds.
    package static let remainingMillisecondsMin: Int64 = 3000
    /// Milliseconds before expiry at which every wait ends: a second more than `remainingMillisecondsMin`, for committing and sending.
    /// Otherwise an event that lives for 5 s would wait until its push is worthless.
    package static let lastCallMilliseconds: Int64 = 4000

    /// Decides for one recipient; costs as much as sorting the participant's devices.
    package static func make(_ input: Input) -> Decision {
        guard input.policy.pushKind != nil else { return Decision(reason: input.policy.rawValue) }
        if input.isActor { return Decision(reason: "actor", end: .cancelled) }
        let remaining = input.expiresAt - input.now
        if remaining <= 0 || input.policy.pushKind == .alert && remaining < remainingMillisecondsMin {
            return Decision(reason: "expired", end: .expired)
        }
        let waitMax = Duration.milliseconds(max(0, remaining - lastCallMilliseconds))
        func wait(_ reach: (state: DeviceState, graceLeft: Int64)) -> Duration {
            min(input.policy.wait(reach.state, graceLeft: .milliseconds(reach.graceLeft)) ?? .zero, waitMax)
        }

        let together = input.reach(nil)
        var decision = Decision(state: together.state, reason: reason(input.policy, together.state))
        let usable = usableDevices(
            input.tokenAge.worthTrying(input.devices, for: input.policy, now: input.now),
            preferring: input.scope == .device ? { input.reach($0).state.isReached } : { _ in false })
        if input.scope == .participant || usable.isEmpty {
            let wait = wait(together)
            if wait > .zero {
                decision.awaited = [Awaited(device: nil, wait: wait, reason: together.state.rawValue)]
            } else if usable.isEmpty {
                // A participant who looks at the app has the socket, also under a policy that pushes as well.
                if !(together.state.isReached && input.policy.usesSocket) {
                    decision.reason = unreachability(input.devices, now: input.now)
                    decision.end = .undeliverable
                }
            } else {
                decision.pushes = usable.map { Push(device: $0.id, reason: decision.reason) }
            }
            return decision
        }
        for device in usable {
            let reach = input.reach(device.id)
            let wait = wait(reach)
            if wait > .zero {
                decision.awaited.append(Awaited(device: device.id, wait: wait, reason: reach.state.rawValue))
            } else {
                decision.pushes.append(Push(device: device.id, reason: reason(input.policy, reach.state)))
            }
        }
        return decision
    }

    private static func reason(_ policy: Policy, _ state: DeviceState) -> String {
        policy.pushesAnyway ? policy.rawValue : state.rawValue
    }

    /// Devices that a push can reach, newest registration first, each token once.
    /// - Parameter preferring: picks one of two devices with the same token. One installation under two ids must not be told twice.
    package static func usableDevices(_ devices: [Device], preferring: (String) -> Bool = { _ in false }) -> [Device] {
        struct Token: Hashable {
            let provider: PushProvider
            let text: String
        }
        var seen: Set<Token> = []
        let candidates = devices.filter { $0.notifications && $0.token != nil }
        // Nearly everybody has one device; sorting and a set for it would take a quarter of deciding.
        if candidates.count < 2 { return candidates }
        let ordered = candidates.sorted { ($1.registeredAt, $0.id) < ($0.registeredAt, $1.id) }
        let kept = (ordered.filter { preferring($0.id) } + ordered.filter { !preferring($0.id) }).filter { device in
            device.token.map { seen.insert(Token(provider: device.provider, text: $0)).inserted } ?? false
        }
        return Array(kept.prefix(devicesMax))
    }

    /// Reason why none of the devices can be pushed to.
    /// - Parameter now: milliseconds since 1970.
    package static func unreachability(_ devices: [Device], now: Int64) -> String {
        if devices.isEmpty { return "no device" }
        let withToken = devices.filter { $0.token != nil }
        if withToken.isEmpty { return "no token" }
        let allowed = withToken.filter(\.notifications)
        if allowed.isEmpty { return "permission denied" }
        return allowed.allSatisfy { TokenAge.isExpired($0, now: now) } ? "token expired" : "token stale"
    }
}

extension DeviceState {
    /// Whether a person sees the events that the socket brings.
    var isReached: Bool { self == .live || self == .quiet || self == .backgroundCapable }
}
