package import HubDefinitions

/// The way of pushes to their gateway. Pushes of one route start, stop and slow down together.
package struct PushRoute: Sendable, Hashable {
    /// The app whose credentials send.
    package var app: String
    /// Push service.
    package var provider: PushProvider
    /// Environment of APNs; FCM has only one.
    package var environment: APNsEnvironment
    /// Whether no gateway has accepted the tokens yet. Such pushes are sent in small numbers, apart from the others.
    package var isUnproven: Bool

    /// A route of proven tokens to production unless given.
    package init(app: String, provider: PushProvider, environment: APNsEnvironment = .production, isUnproven: Bool = false) {
        self.app = app
        self.provider = provider
        self.environment = environment
        self.isUnproven = isUnproven
    }
}

extension PushTarget {
    /// The route of pushes to the target.
    package var route: PushRoute {
        switch provider {
        case .apns: PushRoute(app: app, provider: .apns, environment: environment, isUnproven: !isProven)
        case .fcm: PushRoute(app: app, provider: .fcm, isUnproven: !isProven && form.isOfDevice)
        }
    }
}

extension Device {
    /// The route of pushes to the device.
    package var route: PushRoute {
        switch provider {
        case .apns: PushRoute(app: app, provider: .apns, environment: environment, isUnproven: lastAcceptedAt == nil)
        case .fcm: PushRoute(app: app, provider: .fcm, isUnproven: lastAcceptedAt == nil)
        }
    }
}

/// Number of pushes that can go out on a route now.
package struct PushRoom: Sendable, Equatable {
    /// Pushes that can go out now.
    package var count: Int
    /// Urgent pushes that can go out now, which may draw on a reserve; at least `count`.
    package var urgent: Int
    /// Time after which to ask again if there is no room; nil if a push under way has to end first.
    package var again: Duration?

    /// Room of a route; without `again` a push under way has to end first.
    package init(count: Int, urgent: Int, again: Duration? = nil) {
        self.count = count
        self.urgent = urgent
        self.again = again
    }

    /// Room without a limit.
    package static let unlimited = PushRoom(count: .max, urgent: .max)
}

/// A push that is about to be sent, as its lane sees it.
package struct PushCandidate: Sendable {
    /// Address of the push.
    package var target: PushTarget
    /// Whether it may draw on the lane's reserve.
    package var isUrgent: Bool

    /// A candidate for `PushGateway.admit`.
    package init(target: PushTarget, isUrgent: Bool) {
        self.target = target
        self.isUrgent = isUrgent
    }
}

/// A gateway's answer whether a push may go out.
package enum PushAdmission: Sendable, Equatable {
    /// The push may go at once: its place is reserved.
    case go
    /// The lane has no room. Ask again after `again`; for nil, once a push under way has ended.
    case wait(again: Duration?)
    /// The device has had enough for now; pushes to others may go. Each further one of a batch waits longer.
    case deviceWait(Duration)
}

/// Defaults for a gateway without limits of its own.
extension PushGateway {
    package func room(on route: PushRoute) -> PushRoom { .unlimited }
    package func admit(_ candidates: [PushCandidate]) -> [PushAdmission] { Array(repeating: .go, count: candidates.count) }
}

extension PushMessage {
    /// Longest lifetime of a push that is of use at once or never, in milliseconds.
    package static let shortLifeMilliseconds: Int64 = 60_000

    /// Whether the push precedes others if not all can go at once.
    package var isUrgent: Bool {
        policy == .critical || policy == .both || expiresAt - committedAt <= Self.shortLifeMilliseconds
    }

    /// The facts that order a push among others.
    package struct Timing: Sendable {
        /// Policy of the event.
        package let policy: Policy
        /// Whether the push precedes others.
        package let isUrgent: Bool
        /// Time of the commit, in milliseconds since 1970.
        package let committedAt: Int64
        /// Time of expiry, in milliseconds since 1970.
        package let expiresAt: Int64
    }

    /// The facts that order this message among others.
    package var timing: Timing { Timing(policy: policy, isUrgent: isUrgent, committedAt: committedAt, expiresAt: expiresAt) }
}
