/// A recipient's state at the commit and the decision, in one byte of the event's row.
package struct RecipientNote: Sendable, Hashable {
    /// The decision and its reason. The numbers are stored, so none ever gets another meaning.
    package enum Choice: UInt8, Sendable, CaseIterable {
        /// The event's policy uses only the socket for this recipient.
        case socketOnly = 0
        /// A receipt is awaited; without one a push is made.
        case awaited = 1
        /// A push was due with the commit.
        case pushed = 2
        /// The recipient looks at the app and has no device that a push could reach.
        case seen = 3
        /// The recipient caused the event.
        case actor = 4
        case expired = 5
        case noDevice = 6
        case noToken = 7
        case permissionDenied = 8
        /// Postponed to the end of the recipient's quiet hours.
        case quietHoursDelayed = 9
        /// Dropped because of the recipient's quiet hours.
        case quietHoursDropped = 10
        case muted = 11
        /// More than the recipient's share of alerts.
        case capped = 12
        /// More than the device's share of silent pushes.
        case silentBudget = 13
        /// A newer or stronger push of the same group was under way.
        case superseded = 14
        /// All tokens are stale or expired, and the event is not worth trying them.
        case tokenTooOld = 15
        /// A choice of a newer version.
        case other = 31
    }

    /// State at the commit; nil if it did not matter or is not known.
    package var state: DeviceState?
    /// The decision.
    package var choice: Choice

    /// A note; `state` is nil if it did not matter.
    package init(state: DeviceState?, choice: Choice) {
        self.state = state
        self.choice = choice
    }

    /// Reads a stored byte: three bits of state above five of choice. A number of a newer version becomes `other`.
    package init(code: UInt8) {
        let state = Int(code >> 5)
        self.state = (1...Self.states.count).contains(state) ? Self.states[state - 1] : nil
        choice = Choice(rawValue: code & 0x1F) ?? .other
    }

    /// The stored byte that `init(code:)` reads.
    package var code: UInt8 {
        let state = state.flatMap(Self.states.firstIndex(of:)).map { $0 + 1 } ?? 0
        return UInt8(state) << 5 | choice.rawValue
    }

    /// States by stored position, counted from 1. New ones are only appended, up to seven.
    private static let states: [DeviceState] = [.live, .quiet, .backgroundCapable, .background, .grace, .absent, .serverGrace]
}

extension RecipientNote.Choice {
    /// Why nothing can be pushed, in the words of `Decision.reason`, where the note alone tells it: no row does. Nil for other choices.
    package var reason: String? {
        switch self {
        case .expired: "expired"
        case .noDevice: "no device"
        case .noToken: "no token"
        case .permissionDenied: "permission denied"
        default: nil
        }
    }

    /// Reason why none of a participant's devices can be pushed to.
    /// - Parameter devices: all of the participant's devices.
    package static func unreachable(_ devices: [Device]) -> RecipientNote.Choice {
        if devices.isEmpty { return .noDevice }
        if !devices.contains(where: { $0.token != nil }) { return .noToken }
        return devices.contains { $0.token != nil && $0.notifications } ? .tokenTooOld : .permissionDenied
    }
}
