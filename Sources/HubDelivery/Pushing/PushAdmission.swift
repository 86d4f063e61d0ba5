/// The way that pushes take to their gateway: those of one route start, stop and are slowed down together.
package struct PushRoute: Sendable, Hashable {
    /// The app whose credentials send.
    package var app: String
    package var provider: PushProvider
    /// Of APNs; FCM has one for all.
    package var environment: APNsEnvironment
    /// Nobody has seen the gateway accept these tokens: they go in small numbers beside the others.
    package var isUnproven: Bool

    package init(app: String, provider: PushProvider, environment: APNsEnvironment = .production, isUnproven: Bool = false) {
        self.app = app
        self.provider = provider
        self.environment = environment
        self.isUnproven = isUnproven
    }
}

extension PushTarget {
    package var route: PushRoute {
        switch provider {
        case .apns: PushRoute(app: app, provider: .apns, environment: environment, isUnproven: !isProven)
        case .fcm: PushRoute(app: app, provider: .fcm, isUnproven: !isProven && form.isOfDevice)
        }
    }
}

extension Device {
    /// The way that a push to the device takes.
    package var route: PushRoute {
        switch provider {
        case .apns: PushRoute(app: app, provider: .apns, environment: environment, isUnproven: lastAcceptedAt == nil)
        case .fcm: PushRoute(app: app, provider: .fcm, isUnproven: lastAcceptedAt == nil)
        }
    }
}

/// How much of a route's pushes can go out at this moment.
package struct PushRoom: Sendable, Equatable {
    package var count: Int
    /// The same for urgent ones, which may draw on a reserve; at least `count`.
    package var urgent: Int
    /// When to ask again where there is no room; nil: when a push under way has ended.
    package var again: Duration?

    package init(count: Int, urgent: Int, again: Duration? = nil) {
        self.count = count
        self.urgent = urgent
        self.again = again
    }

    package static let unlimited = PushRoom(count: .max, urgent: .max)
}

/// A push that is about to be sent, as far as its lane wants to know.
package struct PushCandidate: Sendable {
    package var target: PushTarget
    package var isUrgent: Bool

    package init(target: PushTarget, isUrgent: Bool) {
        self.target = target
        self.isUrgent = isUrgent
    }
}

/// Whether a push may go out.
package enum PushAdmission: Sendable, Equatable {
    /// It may, at once: its place is reserved.
    case go
    /// The lane has no room for it. Not before `again`; nil: when a push under way has ended.
    case wait(again: Duration?)
    /// Its device has had enough for the moment; others may go.
    case deviceWait(Duration)
}

/// A gateway without limits of its own.
extension PushGateway {
    package func room(on route: PushRoute) -> PushRoom { .unlimited }
    package func admit(_ candidates: [PushCandidate]) -> [PushAdmission] { Array(repeating: .go, count: candidates.count) }
}

extension PushMessage {
    /// What lives no longer than this is of use at once or never; milliseconds.
    package static let shortLifeMilliseconds: Int64 = 60_000

    /// Goes before others where not all can go at once.
    package var isUrgent: Bool {
        policy == .critical || policy == .both || expiresAt - committedAt <= Self.shortLifeMilliseconds
    }

    /// What its order among others depends on.
    package struct Timing: Sendable {
        package let policy: Policy
        package let isUrgent: Bool
        /// Milliseconds since 1970.
        package let committedAt: Int64
        package let expiresAt: Int64
    }

    package var timing: Timing { Timing(policy: policy, isUrgent: isUrgent, committedAt: committedAt, expiresAt: expiresAt) }
}
