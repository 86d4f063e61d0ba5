/// How surely a participant, or one device of theirs, is reached over the socket: what the waiting time of a push depends on.
package enum DeviceState: String, Sendable, CaseIterable {
    /// Subscribed, the app on the screen as far as known, a sign of life at most `DeviceState.liveSeconds` old.
    case live
    /// The same, with a sign of life up to `quietSeconds` old.
    case quiet
    /// Subscribed, but the app is in the background and keeps its socket working, as it said.
    case backgroundCapable = "bg_capable"
    /// Subscribed, but the app is in the background, or its last sign of life is too old to count.
    case background = "bg"
    /// Gone a moment ago without having said goodbye: on the way to another network, or a page that loads again.
    case grace
    /// Not there, and the server itself came up a moment ago: everybody is on the way back.
    case serverGrace = "grace_server"
    /// Not there.
    case absent

    package static let liveSeconds = 45
    package static let quietSeconds = 90
    /// How long somebody who was cut off counts as on the way back.
    package static let graceSeconds = 15
    /// The same for everybody after the server itself was away.
    package static let bootGraceSeconds = 30

    /// How long an app that was just sent to the background may still answer: a sign of life proves nothing before.
    package static let afterglow = Duration.seconds(20)
    /// A receipt this soon after the event was written counts from the write, a later one from this long before it came: the afterglow has
    /// as much more than the fifteen seconds for which apps do answer.
    package static let promptAnswer = Duration.seconds(5)

    /// The state of the best of several.
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
    /// How long after the commit a push is due when nobody confirms the event: the table of the routing rules.
    /// - Parameter graceLeft: for `grace` and `serverGrace`, for how long the return is waited for.
    /// - Returns: zero: at once; nil: never.
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

    /// When a receipt of an app that says nothing of its state is asked to be proven for the last time, and when the push is due
    /// without a proof; after the event was written. It is asked for the first time as soon as an answer proves something, after
    /// `DeviceState.afterglow`: until then a crash forgets the receipt. Who does not answer then has the longer time to come back.
    package var provisionalTimes: (lastAsk: Duration, due: Duration) {
        self == .critical ? (DeviceState.afterglow, .seconds(25)) : (.seconds(35), .seconds(40))
    }
}
