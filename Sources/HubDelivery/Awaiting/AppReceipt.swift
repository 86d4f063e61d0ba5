/// An app's receipt for an event or its notification on a device.
package struct AppReceipt: Sendable, Equatable {
    /// Event id.
    package var event: String
    package var app: String
    package var channel: String
    package var user: String
    /// Device id of the sender's token.
    package var device: String
    /// The user's index among the event's recipients.
    package var recipient: Int
    /// The receipt names the notification, which only a push carries, not the event, which may have come over the socket.
    package var isOfNotification: Bool

    package init(
        event: String, app: String, channel: String, user: String, device: String, recipient: Int, isOfNotification: Bool = false
    ) {
        self.event = event
        self.app = app
        self.channel = channel
        self.user = user
        self.device = device
        self.recipient = recipient
        self.isOfNotification = isOfNotification
    }
}
