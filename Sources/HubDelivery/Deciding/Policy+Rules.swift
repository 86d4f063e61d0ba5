extension Policy {
    /// What a push under this policy is; nil when it never makes one.
    package var pushKind: PushMessage.Kind? {
        switch self {
        case .realtimeOnly: nil
        case .sync: .silent
        case .notify, .critical, .both, .pushOnly: .alert
        }
    }

    /// A visible push is made whatever the socket does, and its delivery's reason is the policy's name.
    package var pushesAnyway: Bool { self == .both || self == .pushOnly }

    /// Whether the event also goes to the sockets of those it is for.
    package var usesSocket: Bool { self != .pushOnly }

    /// How long an event is worth telling when its definition says nothing.
    package var defaultTTL: Duration {
        switch self {
        case .critical, .sync, .realtimeOnly: .seconds(10 * 60)
        case .notify, .both: .seconds(4 * 3600)
        case .pushOnly: .seconds(3 * 86_400)
        }
    }
}
