package import HubDelivery
package import PusherProtocol

/// What delivery knows and is told of who is where: the API's view of the attendance book. Any thread.
package protocol AttendanceDesk: Sendable {
    /// `/pusher/auth` signed a subscription of this socket for this participant's device, or a sign-in. Returns when a subscription
    /// that follows is certain to find it.
    func bind(_ socketID: SocketID, app: String, user: String, device: String, channel: ChannelName?) async
    /// An app told its state by HTTP.
    /// - Parameter keepsWorking: in the background it goes on reading its socket and shows what comes.
    func setDeviceState(app: String, user: String, device: String, _ state: AppState, keepsWorking: Bool) async
    /// An app told by HTTP that an event arrived. Whoever it stands for is not pushed to any more; written down a moment later.
    func received(_ receipt: AppReceipt) async
    /// What is known of these people's connections to the session's channel, by user id; people without one are left out.
    func presence(app: String, session: Session, users: [String]) async -> [String: ParticipantPresence]
    /// A participant was taken off the roster: their subscriptions to the session's channel end. Returns when nothing that is published
    /// from now on can reach them.
    func removed(_ session: Session, user: String) async
    /// A session is over, with these participants: all subscriptions to its channels end, whoever signed them. Returns as `removed`.
    func sessionEnded(_ session: Session, users: [String]) async
    /// A participant was added or changed: their connections stand for another role from now on.
    func rosterChanged(app: String, session: String, user: String) async
}

/// A participant's connections in short.
package struct ParticipantPresence: Sendable, Equatable {
    /// Connections subscribed to the session's channel.
    package var connections: Int
    package var state: AppState

    package init(connections: Int, state: AppState) {
        self.connections = connections
        self.state = state
    }
}

/// An event, or the notification of it, arrived on a device, says its app.
package struct AppReceipt: Sendable, Equatable {
    package var event: String
    package var app: String
    package var channel: String
    package var user: String
    package var device: String
    /// The user's place among the event's recipients.
    package var recipient: Int
    /// The app names the notification, which is pushed only, and not the event, which may have come over the socket.
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
