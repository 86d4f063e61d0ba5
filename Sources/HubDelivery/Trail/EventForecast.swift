package import HubDefinitions

/// The decision about one event in one channel, made as for a publish and dropped.
package struct EventForecast: Sendable, Equatable {
    /// The decision about one recipient.
    package struct Recipient: Sendable, Equatable {
        /// User id.
        package var user: String
        /// State and decision.
        package var note: RecipientNote
        /// Milliseconds until the first push without a receipt; nil: no receipt is awaited.
        package var waitMilliseconds: Int64?
        /// Devices that get a push at once, or after the wait.
        package var devices: [String]

        /// A decided recipient.
        package init(user: String, note: RecipientNote, waitMilliseconds: Int64?, devices: [String]) {
            self.user = user
            self.note = note
            self.waitMilliseconds = waitMilliseconds
            self.devices = devices
        }
    }

    /// The channel's name.
    package var channel: String
    /// Name of the channel's definition; nil: none matches.
    package var definition: String?
    /// Policy of the event; nil: the socket alone, and nothing would be kept of it.
    package var policy: Policy?
    /// Milliseconds until the event would expire; nil without a policy.
    package var lifetimeMilliseconds: Int64?
    /// Recipients by decision.
    package var choices: [RecipientNote.Choice: Int] = [:]
    /// The first recipients, as many as the request has room for.
    package var recipients: [Recipient] = []

    /// A forecast without recipients.
    package init(channel: String, definition: String?, policy: Policy? = nil, lifetimeMilliseconds: Int64? = nil) {
        self.channel = channel
        self.definition = definition
        self.policy = policy
        self.lifetimeMilliseconds = lifetimeMilliseconds
    }

    /// All recipients.
    package var recipientCount: Int { choices.values.reduce(0, +) }

    /// Most recipients in the forecasts of one request.
    package static let recipientsMax = 1_000
    /// Most channels of one request.
    package static let channelsMax = 10
}
