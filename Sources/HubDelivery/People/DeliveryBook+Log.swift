internal import HubCore
internal import HubDefinitions

/// Changes of people's connections, for whoever looks at a person later.
extension DeliveryBook {
    /// Notes what a report changes about a person, before it is taken. Most reports are receipts, which change nothing.
    mutating func log(_ report: Report, at now: Moment) {
        switch report {
        case .attached(_, let socket, let app, let channel, let user, _, let ticket, _) where ticket != nil:
            guard let user = user ?? definitions.match(channel: channel)?.placeholders.user else { return }
            let device = attendance.device(boundTo: socket, app: app, user: user)
            changes.note(
                PresenceChange(at: now.wall, .opened, device: device), app: app, channel: channel, user: user, now: now.monotonic)
        case .detached(let connection, let channel): log(.closed, of: connection, at: now) { $0 == channel }
        case .disconnected(let connection, _, let mayReturn): log(mayReturn ? .lost : .closed, of: connection, at: now)
        case .state(let connection, let state, _): log(state, of: connection, at: now)
        default: break
        }
    }

    /// Notes an app state, unless the connection had it before.
    private mutating func log(_ state: AppState, of connection: ConnectionID, at now: Moment) {
        guard state != .unknown, attendance.state(of: connection) != state else { return }
        let kind: PresenceChange.Kind = state == .foreground ? .foreground : .background
        log(kind, of: connection, at: now)
    }

    /// Notes an app state that came over HTTP.
    mutating func log(_ state: AppState, app: String, user: String, device: String, at now: Moment) {
        for connection in attendance.connections(app: app, user: user, device: device) { log(state, of: connection, at: now) }
    }

    /// Notes a change of the people who are attached by the connection.
    mutating func log(
        _ kind: PresenceChange.Kind, of connection: ConnectionID, at now: Moment, where isMeant: (String) -> Bool = { _ in true }
    ) {
        for place in attendance.places(of: connection) where isMeant(place.channel) {
            changes.note(
                PresenceChange(at: now.wall, kind, device: place.device), app: place.app, channel: place.channel, user: place.user,
                now: now.monotonic)
        }
    }
}
