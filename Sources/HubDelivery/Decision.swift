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

/// One connection of a participant, as the attendance book knows it.
package struct KnownAttachment: Sendable, Equatable {
    /// Nil: nobody said which device the socket belongs to.
    package var device: String?
    package var state: AppState
    /// Whether it is subscribed to the event's channel; a connection that is not cannot be told over it.
    package var isSubscribed: Bool

    package init(device: String?, state: AppState, isSubscribed: Bool) {
        self.device = device
        self.state = state
        self.isSubscribed = isSubscribed
    }

    var isLive: Bool { isSubscribed && state != .background }
}

/// Who is told of one event, on which surface and why: a pure function of what is known when it is published.
package struct Decision: Sendable, Equatable {
    /// Where a person is told.
    package enum Surface: String, Sendable { case none, socket, push, both }

    /// A push to one device.
    package struct Push: Sendable, Equatable {
        package var device: String
        /// From the event's commit to the moment the push is due. Zero: at once.
        package var wait: Duration
        /// `bg`, `absent`, `not subscribed`, or the policy's name when the policy asks for a push in any case.
        package var reason: String
    }

    /// Everything the decision depends on.
    package struct Input: Sendable {
        package var policy: Policy
        /// Milliseconds since 1970.
        package var expiresAt: Int64
        /// Milliseconds since 1970.
        package var now: Int64
        /// The recipient caused the event.
        package var isActor: Bool
        /// False when the event is for others in the channel.
        package var isInAudience: Bool
        package var scope: SuppressScope
        package var attachments: [KnownAttachment]
        package var devices: [Device]

        package init(
            policy: Policy, expiresAt: Int64, now: Int64, isActor: Bool = false, isInAudience: Bool = true,
            scope: SuppressScope = .participant, attachments: [KnownAttachment], devices: [Device]
        ) {
            self.policy = policy
            self.expiresAt = expiresAt
            self.now = now
            self.isActor = isActor
            self.isInAudience = isInAudience
            self.scope = scope
            self.attachments = attachments
            self.devices = devices
        }
    }

    /// Where a person notices the event. A frame to an app in the background is not noticed: there the push is the surface.
    package var surface: Surface
    /// Whether the participant's subscribed connections get the frame.
    package var writesSocket: Bool
    /// Newest registration first.
    package var pushes: [Push]
    /// For the trail: `live`, `bg`, `absent`, `not subscribed`, `no device`, `no token`, `permission denied`, `actor`, `role`, `expired`,
    /// `realtime_only`, `both`, `push_only`.
    package var reason: String
    /// The state of the delivery rows this makes: `due` is one row for each push, any other one row with no device.
    /// Nil: no row at all.
    package var state: DeliveryState?

    /// The most devices of one participant that get a push for one event.
    package static let devicesMax = 25
    /// An alert that would arrive with less than this left is not sent, in milliseconds.
    package static let remainingMillisecondsMin: Int64 = 3000

    /// Costs as much as sorting the participant's devices.
    package static func make(_ input: Input) -> Decision {
        if !input.isInAudience { return nothing("role", nil) }
        if input.isActor { return nothing("actor", .cancelled) }
        let remaining = input.expiresAt - input.now
        if remaining <= 0 || input.policy.pushKind == .alert && remaining < remainingMillisecondsMin {
            return nothing("expired", .expired)
        }

        let subscribed = input.attachments.filter(\.isSubscribed)
        let writesSocket = input.policy.usesSocket && !subscribed.isEmpty
        guard input.policy.pushKind != nil else {
            return Decision(
                surface: writesSocket ? .socket : .none, writesSocket: writesSocket, pushes: [], reason: input.policy.rawValue,
                state: writesSocket ? .socket : nil)
        }

        let live = subscribed.filter(\.isLive)
        let isForced = input.policy == .both || input.policy == .pushOnly
        // A live socket of an unknown device stands for all of the participant's devices, whatever the scope.
        let isSuppressed = !isForced && (input.scope == .participant ? !live.isEmpty : live.contains { $0.device == nil })
        if isSuppressed {
            return Decision(surface: .socket, writesSocket: writesSocket, pushes: [], reason: "live", state: .socket)
        }

        let suppressing = isForced ? [] : Set(live.compactMap(\.device))
        let pushes = usableDevices(input.devices, without: suppressing).prefix(devicesMax).map { device in
            let reason = isForced ? input.policy.rawValue : absence(of: device.id, in: input.attachments)
            return Push(device: device.id, wait: wait(policy: input.policy), reason: reason)
        }
        let isLive = !live.isEmpty && input.policy.usesSocket
        if pushes.isEmpty {
            if isLive { return Decision(surface: .socket, writesSocket: true, pushes: [], reason: "live", state: .socket) }
            return Decision(
                surface: writesSocket ? .socket : .none, writesSocket: writesSocket, pushes: [],
                reason: unreachability(input.devices),
                state: .undeliverable)
        }
        let reason = isForced ? input.policy.rawValue : isLive ? "live" : pushes[0].reason
        return Decision(
            surface: isLive ? .both : .push, writesSocket: writesSocket, pushes: Array(pushes), reason: reason, state: .due)
    }

    /// How long a push waits for a receipt before it is due.
    ///
    /// Zero for now: without receipts the socket alone decides about live devices, and a push that is decided is sent.
    /// With receipts this becomes the decision table (device state by policy, from 0 to 10 s), live devices get pushes that wait,
    /// and the receipt cancels them; nothing else in this file has to change.
    private static func wait(policy: Policy) -> Duration { .zero }

    private static func nothing(_ reason: String, _ state: DeliveryState?) -> Decision {
        Decision(surface: .none, writesSocket: false, pushes: [], reason: reason, state: state)
    }

    /// Devices that a push can reach, newest registration first, each token once. A token that a suppressing device also
    /// has is that device's: one installation under two ids must not be told twice.
    private static func usableDevices(_ devices: [Device], without suppressing: Set<String>) -> [Device] {
        struct Token: Hashable {
            let provider: PushProvider
            let text: String
        }
        func token(_ device: Device) -> Token? {
            device.notifications ? device.token.map { Token(provider: device.provider, text: $0) } : nil
        }
        var seen = Set(devices.filter { suppressing.contains($0.id) }.compactMap(token))
        return devices.sorted { ($1.registeredAt, $0.id) < ($0.registeredAt, $1.id) }.filter { device in
            guard !suppressing.contains(device.id), let token = token(device) else { return false }
            return seen.insert(token).inserted
        }
    }

    /// Why the socket does not reach this device. Attachments of unknown devices may be this one.
    private static func absence(of device: String, in attachments: [KnownAttachment]) -> String {
        let own = attachments.filter { $0.device == nil || $0.device == device }
        if own.contains(where: { $0.isSubscribed }) { return "bg" }
        return own.isEmpty ? "absent" : "not subscribed"
    }

    private static func unreachability(_ devices: [Device]) -> String {
        if devices.isEmpty { return "no device" }
        return devices.contains { $0.token != nil } ? "permission denied" : "no token"
    }
}
