/// A change of a person's connections to a channel, or of the state of the app on one of them.
package struct PresenceChange: Sendable, Equatable {
    /// Sorts of changes.
    package enum Kind: UInt8, Sendable, CaseIterable {
        /// A subscription began.
        case opened
        /// It ended with a goodbye.
        case closed
        /// It was cut off.
        case lost
        /// The app said that it is on the screen.
        case foreground
        /// The app said that it is not.
        case background

        /// As answers name it.
        package var word: String { "\(self)" }
    }

    /// Milliseconds since 1970.
    package var at: Int64
    package var kind: Kind
    /// The connection's device; nil if unknown.
    package var device: String?

    package init(at: Int64, _ kind: Kind, device: String?) {
        self.at = at
        self.kind = kind
        self.device = device
    }
}
