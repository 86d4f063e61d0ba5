internal import HubCore

/// Whether an app is on the screen, as far as it told.
package enum AppState: String, Sendable, CaseIterable {
    case foreground, background
    /// A stock client says nothing; that counts as foreground.
    case unknown
}

/// Whose sign of life keeps a push away.
package enum SuppressScope: String, Sendable, CaseIterable {
    /// One live device is enough for all of a participant's devices.
    case participant
    /// Each device stands for itself.
    case device
}

/// Who is told of one event, on which surface and why: a pure function of what is known when it is published.
///
/// Presence chooses how long the push waits for a receipt, and nothing else: nobody is left to the socket alone.
package struct Decision: Sendable, Equatable {
    /// A push that is due with the commit.
    package struct Push: Sendable, Equatable {
        package var device: String
        /// The device's state, or the policy's name when the policy asks for a push in any case.
        package var reason: String
    }

    /// Somebody whose receipt is awaited before a push.
    package struct Awaited: Sendable, Equatable {
        /// Nil: all devices of the participant together.
        package var device: String?
        /// From the commit.
        package var wait: Duration
        package var reason: String
    }

    /// Everything the decision depends on.
    package struct Input {
        package var policy: Policy
        /// Milliseconds since 1970.
        package var expiresAt: Int64
        /// Milliseconds since 1970.
        package var now: Int64
        /// The recipient caused the event.
        package var isActor: Bool
        package var scope: SuppressScope
        package var devices: [Device]
        /// Which of them are too old to be tried.
        package var tokenAge: TokenAge
        /// How surely the socket reaches the participant, or one device, and for how many milliseconds a return is waited for.
        package var reach: (_ device: String?) -> (state: DeviceState, graceLeft: Int64)

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

    /// How surely the socket reaches the participant; nil where it did not matter.
    package var state: DeviceState?
    /// Newest registration first.
    package var pushes: [Push] = []
    package var awaited: [Awaited] = []
    /// For the trail: a device state, the policy's name, `no device`, `no token`, `permission denied`,
    /// `token stale`, `token expired`, `actor`, `expired`.
    package var reason: String
    /// An end that is written down at once, one row without a device: `undeliverable`, `expired`, `cancelled`. Nil: none.
    package var end: PushState?

    /// The most devices of one participant that get a push for one event.
    package static let devicesMax = 25
    /// An alert that would arrive with less than this left is not sent, in milliseconds.
    package static let remainingMillisecondsMin: Int64 = 3000
    /// No wait ends later than this before the event expires, in milliseconds: a second more than `remainingMillisecondsMin`, for
    /// committing and sending. Without it an event that lives for 5 s would be waited for until its push is worth nothing.
    package static let lastCallMilliseconds: Int64 = 4000

    /// Costs as much as sorting the participant's devices.
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
                // Whoever is looking at the app has the socket, also under a policy that would have pushed as well.
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
    /// - Parameter preferring: of two devices with one token, the one that counts: one installation under two ids must not be
    ///   told twice.
    package static func usableDevices(_ devices: [Device], preferring: (String) -> Bool = { _ in false }) -> [Device] {
        struct Token: Hashable {
            let provider: PushProvider
            let text: String
        }
        var seen: Set<Token> = []
        let candidates = devices.filter { $0.notifications && $0.token != nil }
        // Nearly everybody has one: sorting and a set for it would be a quarter of deciding.
        if candidates.count < 2 { return candidates }
        let ordered = candidates.sorted { ($1.registeredAt, $0.id) < ($0.registeredAt, $1.id) }
        let kept = (ordered.filter { preferring($0.id) } + ordered.filter { !preferring($0.id) }).filter { device in
            device.token.map { seen.insert(Token(provider: device.provider, text: $0)).inserted } ?? false
        }
        return Array(kept.prefix(devicesMax))
    }

    /// Why no device can be pushed to.
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
    /// Somebody sees what the socket brings.
    var isReached: Bool { self == .live || self == .quiet || self == .backgroundCapable }
}
