/// Delivery of an event, as its definition asks.
package enum Policy: String, Sendable, CaseIterable {
    case realtimeOnly = "realtime_only"
    case sync
    case notify
    case critical
    case both
    case pushOnly = "push_only"
}

/// Kind of a push.
package enum PushKind: String, Sendable {
    /// A visible push, with title and body.
    case alert
    /// A push that wakes the app, with data only.
    case silent
}

extension Policy {
    /// Kind of push under this policy; nil for no push.
    package var pushKind: PushKind? {
        switch self {
        case .realtimeOnly: nil
        case .sync: .silent
        case .notify, .critical, .both, .pushOnly: .alert
        }
    }

    /// Whether a visible push is made whatever the socket does. The delivery's reason is then the policy's name.
    package var pushesAnyway: Bool { self == .both || self == .pushOnly }

    /// Whether the event also goes to its recipients' sockets.
    package var usesSocket: Bool { self != .pushOnly }

    /// Lifetime of an event whose definition names none.
    package var defaultTTL: Duration {
        switch self {
        case .critical, .sync, .realtimeOnly: .seconds(10 * 60)
        case .notify, .both: .seconds(4 * 3600)
        case .pushOnly: .seconds(3 * 86_400)
        }
    }
}
