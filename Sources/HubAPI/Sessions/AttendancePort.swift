package import HubDefinitions
package import HubDelivery
package import PusherProtocol

/// The API's view of the attendance book. Any thread.
package protocol AttendancePort: Sendable {
    /// Notes that `/pusher/auth` signed a subscription of this socket for this participant's device; a nil channel is a sign-in.
    /// Returns when a following subscription is certain to find the note.
    func bind(_ socketID: SocketID, app: String, user: String, device: String, channel: ChannelName?) async
    /// Notes an app state declared via HTTP.
    /// - Parameter keepsWorking: in the background the app goes on reading its socket and shows events.
    func setDeviceState(app: String, user: String, device: String, _ state: AppState, keepsWorking: Bool) async
    /// Notes a receipt declared via HTTP. Pushes to the recipient stop; the receipt is stored a moment later.
    func received(_ receipt: AppReceipt) async
    /// Presence in the session's channel by user id; users without a connection are left out.
    func presence(app: String, session: Session, users: [String]) async -> [String: ParticipantPresence]
    /// Presence in a channel by user id. Left out are users without a connection. A question about one user alone finds recent changes,
    /// too.
    func presence(app: String, channel: String, users: [String]) async -> [String: ParticipantPresence]
    /// Ends the subscriptions of a removed participant to the session's channel. Returns when no later publish can reach the participant.
    func removed(_ session: Session, user: String) async
    /// Ends all subscriptions to the channels of an ended session, regardless of their signer. Returns like `removed`.
    func sessionEnded(_ session: Session, users: [String]) async
    /// Applies a participant's new role to their connections.
    func rosterChanged(app: String, session: String, user: String) async
}
