/// What was known of a recipient when the event was committed and what was decided, in one byte of the event's fan-out.
package struct RecipientNote: Sendable, Hashable {
    /// What was decided, and why. The numbers are stored: none is ever given another meaning.
    package enum Choice: UInt8, Sendable, CaseIterable {
        /// The event's policy means the socket only, for this recipient.
        case socketOnly = 0
        /// A receipt is awaited; without one a push is made.
        case awaited = 1
        /// A push was due with the commit.
        case pushed = 2
        /// The recipient looks at the app and has no device that a push could reach.
        case seen = 3
        /// Caused the event.
        case actor = 4
        case expired = 5
        case noDevice = 6
        case noToken = 7
        case permissionDenied = 8
        /// Put off to the end of the recipient's quiet hours.
        case quietHoursDelayed = 9
        /// Not told because of the recipient's quiet hours.
        case quietHoursDropped = 10
        case muted = 11
        /// More than the recipient's share of alerts.
        case capped = 12
        /// More than the device's share of silent pushes.
        case silentBudget = 13
        /// Something newer or stronger of the same group was under way.
        case superseded = 14
        /// No app told its token lately, and the event is not worth trying those.
        case tokenTooOld = 15
        /// Written by a newer version.
        case other = 31
    }

    /// Nil: it did not matter, or is not known.
    package var state: DeviceState?
    package var choice: Choice

    package init(state: DeviceState?, choice: Choice) {
        self.state = state
        self.choice = choice
    }

    /// Three bits of state above five of choice.
    package init(code: UInt8) {
        let state = Int(code >> 5)
        self.state = (1...Self.states.count).contains(state) ? Self.states[state - 1] : nil
        choice = Choice(rawValue: code & 0x1F) ?? .other
    }

    package var code: UInt8 {
        let state = state.flatMap(Self.states.firstIndex(of:)).map { $0 + 1 } ?? 0
        return UInt8(state) << 5 | choice.rawValue
    }

    /// Stored by position, counted from 1: only ever added to, up to seven.
    private static let states: [DeviceState] = [.live, .quiet, .backgroundCapable, .background, .grace, .absent, .serverGrace]
}

extension RecipientNote.Choice {
    /// Why no device of somebody can be pushed to.
    /// - Parameter devices: all of theirs.
    package static func unreachable(_ devices: [Device]) -> RecipientNote.Choice {
        if devices.isEmpty { return .noDevice }
        if !devices.contains(where: { $0.token != nil }) { return .noToken }
        return devices.contains { $0.token != nil && $0.notifications } ? .tokenTooOld : .permissionDenied
    }
}
