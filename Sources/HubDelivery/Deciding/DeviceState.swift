package import HubDefinitions

/// How surely the socket reaches a participant, or one of their devices; chooses the wait before a push.
package enum DeviceState: String, Sendable, CaseIterable {
    /// Subscribed, the app on the screen as far as known, a sign of life at most `DeviceState.liveSeconds` old.
    case live
    /// As `live`, with a sign of life at most `quietSeconds` old.
    case quiet
    /// Subscribed, the app in the background, where it said that it keeps its socket working.
    case backgroundCapable = "bg_capable"
    /// Subscribed, but the app is in the background, or its last sign of life is too old to count.
    case background = "bg"
    /// Cut off a moment ago without a goodbye: on the way to another network, or a page that loads again.
    case grace
    /// Absent, but the server itself started a moment ago, so everybody is on the way back.
    case serverGrace = "grace_server"
    /// Not subscribed.
    case absent

    /// Most seconds since a sign of life in `live`.
    package static let liveSeconds = 45
    /// Most seconds since a sign of life in `quiet`.
    package static let quietSeconds = 90
    /// Seconds for which a device that was cut off counts as on the way back.
    package static let graceSeconds = 15
    /// Seconds for which everybody counts as on the way back after the server's own absence.
    package static let bootGraceSeconds = 30

    /// Time for which an app that left the screen may still answer. Until then a sign of life proves nothing.
    package static let afterglow = Duration.seconds(20)
    /// Longest time to a receipt that counts from the write of the event. A later receipt counts from this long before it arrived. The
    /// afterglow exceeds the fifteen seconds for which apps do answer by as much.
    package static let promptAnswer = Duration.seconds(5)

    /// The best of several states; absent for none.
    package static func best(of states: some Sequence<DeviceState>) -> DeviceState {
        states.min { $0.rank < $1.rank } ?? .absent
    }

    private var rank: Int {
        switch self {
        case .live: 0
        case .quiet: 1
        case .backgroundCapable: 2
        case .grace: 3
        case .serverGrace: 4
        case .background: 5
        case .absent: 6
        }
    }
}

extension Policy {
    /// Time from the commit to the push if nobody confirms the event (docs/delivery.md has the table).
    /// - Parameter graceLeft: time for which a return is awaited, in `grace` and `serverGrace`.
    /// - Returns: zero for a push at once; nil for no push.
    package func wait(_ state: DeviceState, graceLeft: Duration = .seconds(DeviceState.graceSeconds)) -> Duration? {
        switch (self, state) {
        case (.realtimeOnly, _): nil
        case (.both, _), (.pushOnly, _), (_, .absent): .zero
        case (.sync, .live), (.sync, .backgroundCapable): .seconds(10)
        case (.sync, .quiet): .seconds(6)
        case (.sync, .background): .seconds(3)
        case (.sync, .grace), (.sync, .serverGrace), (.notify, .serverGrace): graceLeft
        case (.notify, .live): .seconds(5)
        case (.notify, .quiet), (.notify, .backgroundCapable): .seconds(3)
        case (.notify, .background), (.critical, .background): .zero
        case (.notify, .grace): min(graceLeft, .seconds(10))
        case (.critical, .live), (.critical, .grace), (.critical, .serverGrace): .seconds(2)
        case (.critical, .quiet), (.critical, .backgroundCapable): .seconds(1)
        }
    }

    /// Times from the write of the event to the last question for a sign of life, and to the push without one. They apply to receipts of
    /// apps that say nothing of their state.
    ///
    /// The first question comes after `DeviceState.afterglow`, as soon as an answer proves something. Until then a crash forgets the
    /// receipt. After the last question the participant still has time to come back.
    package var provisionalTimes: (lastAsk: Duration, due: Duration) {
        self == .critical ? (DeviceState.afterglow, .seconds(25)) : (.seconds(35), .seconds(40))
    }
}
