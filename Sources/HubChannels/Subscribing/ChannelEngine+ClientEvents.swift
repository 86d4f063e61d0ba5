internal import HubCore
internal import PusherProtocol

/// Events that clients send to each other (docs/protocol.md, 2.10), and the one they send to the hub.
extension ChannelEngine {
    /// Event by which an app declares whether it is on the screen; consumed, never forwarded.
    static let appStateEvent = "client-app-state"

    func clientEvent(_ name: String, _ channelText: String, _ data: DataLiteral, from connection: Connection) {
        guard let channelName = ChannelName(allowingServerToUser: channelText), let subscription = connection.subscriptions[channelName],
            case .active(let channel) = subscription.phase
        else {
            return complain(to: connection.id, "Client event rejected: the connection is not subscribed to '\(channelText.quotable(64))'")
        }
        guard channelName.kind.allowsClientEvents else {
            return complain(to: connection.id, "Client event rejected: only private and presence channels have client events")
        }
        if name == Self.appStateEvent { return appState(data, from: connection) }
        guard connection.app.clientEvents else {
            return complain(to: connection.id, "Client event rejected: client events are not enabled for this app")
        }
        guard data.contentByteCount <= connection.app.eventDataBytesMax else {
            return complain(
                to: connection.id, "Client event rejected: its data may have at most \(connection.app.eventDataBytesMax) bytes")
        }
        guard allowsAnotherClientEvent(connection) else {
            return complain(
                to: connection.id, code: ErrorCode.clientEventRateExceeded,
                "Client event rejected: more than \(connection.app.clientEventsPerSecond) client events in a second")
        }
        countClientEvent()
        if let nodes {
            let event = NodeMessage.Event(
                app: connection.app.id, name: name, channels: [channelName], data: data, excluded: connection.socketID,
                user: subscription.user, isClients: true)
            // A client event has no answer: while the way is interrupted, it is lost, as it is for clients that are away.
            return nodes.publish([event]) { _ in }
        }
        let payload = ServerEvent.event(name: name, channel: channelName, data: data, userID: subscription.user)
        publish(
            Publication(
                app: channel.app, frames: OneOrMany(one: ChannelFrame(channelName, Frame.text(payload))), excluded: connection.id,
                arrivedAt: arrivedAt, way: .client))
        guard facts.wants(.clientEvent, app: channel.app) else { return }
        facts.note(
            app: channel.app, channelName,
            .clientEvent(name: name, data: data.content, socketID: connection.socketID, user: subscription.user))
    }

    private func appState(_ data: DataLiteral, from connection: Connection) {
        let content = data.contentValue
        guard let text = content?["state"]?.stringValue, let state = DeclaredAppState(rawValue: text) else {
            return complain(
                to: connection.id,
                "\(Self.appStateEvent) rejected: its data must be {\"state\":\"foreground\"} or {\"state\":\"background\"}")
        }
        var keepsWorking = false
        if let told = content?["keeps_working"], told != .null {
            guard let flag = told.boolValue else {
                return complain(to: connection.id, "\(Self.appStateEvent) rejected: keeps_working must be true or false")
            }
            // `keeps_working` has no meaning on the screen.
            keepsWorking = flag && state == .background
        }
        guard paysState(connection) else {
            // A repeated state can be ignored. A new state must not be lost, so the connection is closed and counts as away.
            if connection.declared?.state == state, connection.declared?.keepsWorking == keepsWorking { return }
            return refuse(connection.id, .tooManyFrames)
        }
        connection.declared = (state, keepsWorking)
        if connection.isWatched { reports.append(.state(connection.id, state, keepsWorking: keepsWorking)) }
    }

    /// Allows `clientEventsPerSecond` events in the second that begins with the first of them, not with the clock's second.
    /// Excess events are dropped, and the connection stays.
    private func allowsAnotherClientEvent(_ connection: Connection) -> Bool {
        let now = time.monotonicNanoseconds
        if connection.clientEventCount == 0 || now &- connection.clientEventsSinceNanoseconds >= 1_000_000_000 {
            connection.clientEventsSinceNanoseconds = now
            connection.clientEventCount = 0
        }
        connection.clientEventCount += 1
        return connection.clientEventCount <= connection.app.clientEventsPerSecond
    }
}
